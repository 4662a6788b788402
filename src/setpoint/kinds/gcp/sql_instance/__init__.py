"""SQLInstance: a Cloud SQL instance, a replica or a clone.

Imported by `app`; imports `kinds.gcp.shared` and no other kind. Start at `kind.py`: `declared` and `normalization` make
both sides comparable, `request_fields` and `requests` turn the result into bodies.
"""

from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_instance.live import SqlInstance
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceSpec, SqlInstanceTree

__all__ = (
    "SqlInstance",
    "SqlInstanceKind",
    "SqlInstanceSpec",
    "SqlInstanceTree",
)
