"""SQLInstance: a Cloud SQL instance."""

from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_instance.live import SqlInstance
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceSpec, SqlInstanceTree

__all__ = (
    "SqlInstance",
    "SqlInstanceKind",
    "SqlInstanceSpec",
    "SqlInstanceTree",
)
