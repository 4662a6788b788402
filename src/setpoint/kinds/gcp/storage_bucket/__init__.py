"""StorageBucket: a Cloud Storage bucket."""

from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.live import Bucket
from setpoint.kinds.gcp.storage_bucket.spec import (
    StorageBucketSpec,
    StorageBucketTree,
    effective_desired_storage_bucket,
)
from setpoint.kinds.gcp.storage_bucket.view import in_spec_terms

__all__ = (
    "Bucket",
    "StorageBucketKind",
    "StorageBucketSpec",
    "StorageBucketTree",
    "effective_desired_storage_bucket",
    "in_spec_terms",
)
