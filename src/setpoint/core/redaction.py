"""Redaction of Kubernetes Secrets: their values never appear in a change."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from setpoint.core.diff import REDACTED, FieldChange
from setpoint.core.unstructured import group_kind
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path

# Where a Secret has its values; the last is kubectl's copy of the whole.
_SECRET_PATHS: Final = (
    Path(("data",)),
    Path(("stringData",)),
    Path(("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")),
)


def is_secret(object_: Json) -> bool:
    """Whether an object has values that nobody may see."""
    return group_kind(object_) == ("", "Secret")


def redact_changes(changes: Iterable[FieldChange], of: Json) -> tuple[FieldChange, ...]:
    """The changes of an object without what nobody may see."""
    if not is_secret(of):
        return tuple(changes)
    return tuple(_redacted(one) if is_secret_path(one.path) else one for one in changes)


def is_secret_path(path: Path) -> bool:
    """Whether what stands there in a Secret is for nobody to see."""
    return any(secret.covers(path) or path.covers(secret) for secret in _SECRET_PATHS)


def _redacted(change: FieldChange) -> FieldChange:
    before, after = (MISSING if isinstance(side, Missing) else REDACTED for side in (change.before, change.after))
    return replace(change, before=before, after=after)
