"""SQLInstance: a Cloud SQL instance."""

from setpoint.kinds.gcp.sql_instance.fitted import effective_desired_sql_instance
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_instance.live import Instance
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceSpec, SqlInstanceTree
from setpoint.kinds.gcp.sql_instance.view import in_spec_terms

__all__ = (
    "Instance",
    "SqlInstanceKind",
    "SqlInstanceSpec",
    "SqlInstanceTree",
    "effective_desired_sql_instance",
    "in_spec_terms",
)
