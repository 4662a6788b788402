"""StorageBucket: a Cloud Storage bucket."""

from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.live import StorageBucket
from setpoint.kinds.gcp.storage_bucket.live_view import bucket_as_spec
from setpoint.kinds.gcp.storage_bucket.spec import (
    StorageBucketSpec,
    StorageBucketTree,
    effective_desired_storage_bucket,
)

__all__ = (
    "StorageBucket",
    "StorageBucketKind",
    "StorageBucketSpec",
    "StorageBucketTree",
    "bucket_as_spec",
    "effective_desired_storage_bucket",
)
