"""What nobody may see of a Kubernetes object: the values of a Secret."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from setpoint.core.diff import REDACTED, FieldChange
from setpoint.core.kubernetes import group_and_kind
from setpoint.core.paths import Path
from setpoint.core.values import MISSING, Json, Missing

# Where a Secret has its values; the last is kubectl's copy of the whole.
_HIDDEN: Final = (
    Path(("data",)),
    Path(("stringData",)),
    Path(("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")),
)


def is_secret(object_: Json) -> bool:
    """Whether an object has values that nobody may see."""
    return group_and_kind(object_) == ("", "Secret")


def hidden(changes: Iterable[FieldChange], of: Json) -> tuple[FieldChange, ...]:
    """The changes of an object without what nobody may see."""
    if not is_secret(of):
        return tuple(changes)
    return tuple(_hidden(one) if is_hidden(one.path) else one for one in changes)


def is_hidden(path: Path) -> bool:
    """Whether what stands there in a Secret is for nobody to see."""
    return any(secret.covers(path) or path.covers(secret) for secret in _HIDDEN)


def _hidden(change: FieldChange) -> FieldChange:
    before, after = (MISSING if isinstance(side, Missing) else REDACTED for side in (change.before, change.after))
    return replace(change, before=before, after=after)
