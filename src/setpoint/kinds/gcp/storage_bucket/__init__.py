"""StorageBucket: a Cloud Storage bucket.

Imported by `app`; imports `kinds.gcp.shared` and no other kind. Start at `kind.py`.
"""

from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.live import StorageBucket
from setpoint.kinds.gcp.storage_bucket.spec import (
    StorageBucketSpec,
    StorageBucketTree,
)

__all__ = (
    "StorageBucket",
    "StorageBucketKind",
    "StorageBucketSpec",
    "StorageBucketTree",
)
