"""SQLUser: a user of a Cloud SQL instance, told from others by name and host."""

from setpoint.kinds.gcp.sql_user.kind import SqlUserKind
from setpoint.kinds.gcp.sql_user.live import SqlUser
from setpoint.kinds.gcp.sql_user.spec import SqlUserSpec, SqlUserTree

__all__ = [
    "SqlUser",
    "SqlUserKind",
    "SqlUserSpec",
    "SqlUserTree",
]
