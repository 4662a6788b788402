"""SQLUser: a user of a Cloud SQL instance, identified by name and host.

Imported by `app`; imports `kinds.gcp.shared` and no other kind. Start at `kind.py`.
"""

from setpoint.kinds.gcp.sql_user.kind import SqlUserKind
from setpoint.kinds.gcp.sql_user.live import SqlUser
from setpoint.kinds.gcp.sql_user.spec import SqlUserSpec, SqlUserTree

__all__ = [
    "SqlUser",
    "SqlUserKind",
    "SqlUserSpec",
    "SqlUserTree",
]
