"""SQLInstance: a Cloud SQL instance."""

from setpoint.kinds.gcp.sql_instance.declared import effective_desired_sql_instance
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_instance.live import SqlInstance
from setpoint.kinds.gcp.sql_instance.normalization import instance_as_spec
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceSpec, SqlInstanceTree

__all__ = (
    "SqlInstance",
    "SqlInstanceKind",
    "SqlInstanceSpec",
    "SqlInstanceTree",
    "effective_desired_sql_instance",
    "instance_as_spec",
)
