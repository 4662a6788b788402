"""What the status shows of a bucket, field by field."""

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.numbers import Int64


class ObservedSoftDelete(Struct, frozen=True):
    effectiveTime: str | UnsetType = UNSET
    """Since when it holds."""
    retentionDurationSeconds: Int64 | UnsetType = UNSET
    """How long a deleted object can be had back."""


class ObservedState(Struct, frozen=True):
    softDeletePolicy: ObservedSoftDelete | UnsetType = UNSET
    """The soft delete policy."""
    storageClass: str | UnsetType = UNSET
    """The class of objects that do not name one."""


class StorageBucketStatus(Struct, frozen=True):
    """What comes with a live bucket and nobody asks for."""

    observedState: ObservedState | UnsetType = UNSET
    """The storage class, and the soft delete policy with the time since when it holds."""
    selfLink: str | UnsetType = UNSET
    """The address of the bucket in the API."""
    url: str | UnsetType = UNSET
    """`gs://` and the bucket's name."""
