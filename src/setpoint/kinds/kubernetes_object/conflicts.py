"""Fields that somebody else holds, objects that another resource keeps, and changes that no object can make."""

import re
from collections.abc import Sequence
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.paths import Path
from setpoint.core.values import Json
from setpoint.errors import (
    HeldByOthers,
    ImmutableFieldChanged,
    ManifestInvalid,
    RemoteConflict,
    RemoteError,
    RemoteInvalid,
    RemoteRefused,
)
from setpoint.kinds.kubernetes_object.ownership import PREFIX, UPDATE, owners_of
from setpoint.kinds.kubernetes_object.place import Place

# What Kubernetes says of a field that is fixed; `Forbidden` alone may mean anything.
_FIXED: Final = re.compile(
    r"immutable|updates? to \S.* (?:is|are) forbidden|may not change (?:once set|fields other than)"
    r"|cannot change roleRef",
    re.IGNORECASE,
)


def is_by_hand(error: HeldByOthers, live: Json, decision: Decision) -> bool:
    """Whether what is held was ours until somebody changed it: nothing else moved, and nobody else declares it.

    Whoever applies says what a field is to be, as we do; whoever updates has but changed it.
    """
    if decision is not Decision.DRIFTED:
        return False
    operations = {(owner.manager, owner.operation) for owner in owners_of(live)}
    return bool(error.held) and all(
        {operation for name, operation in operations if name == manager} == {UPDATE} for _, manager in error.held
    )


def conflict(error: HeldByOthers, place: Place, left_alone: Sequence[Path] = ()) -> RemoteError:
    """The conflict in the words of this kind: every field, who holds it, and what to do.

    Somebody who changed what is left to others, in this very moment, was faster.
    """
    fields = [path_at(field) for field, _ in error.held]
    if fields and all(any(path.covers(field) for path in left_alone) for field in fields):
        return RemoteConflict(f"{place.title} was changed meanwhile: {error}")
    held = "; ".join(f"{field} is held by {manager}" for field, manager in error.held) or str(error)
    return HeldByOthers(
        f"{place.title}: {held}. Set spec.forceConflicts: true to take it over, list it in spec.ignoreFields to leave "
        "it to its holder, or leave it out of the manifest",
        error.held,
    )


def require_free(live: Json, manager: str, place: Place) -> None:
    """RemoteRefused for an object that another KubernetesObject keeps, and this one never did."""
    keepers = [owner.manager for owner in owners_of(live) if owner.is_keeper]
    if manager in keepers or not keepers:
        return
    told = ", ".join(f"KubernetesObject {one.removeprefix(PREFIX)}" for one in keepers)
    raise RemoteRefused(
        f"{place.title} is kept by {told}: delete that one, with cnrm.cloud.google.com/deletion-policy: abandon if the "
        "object is to stay; or take it over with spec.forceConflicts: true"
    )


def fixed_fields(error: RemoteInvalid) -> tuple[str, ...]:
    """The fields that cannot change, when that is all that is wrong."""
    if error.causes and all(_FIXED.search(message) for _, message in error.causes):
        return tuple(dict.fromkeys(field for field, _ in error.causes))
    return ()


def immutable(error: RemoteInvalid, fields: Sequence[str], place: Place) -> ImmutableFieldChanged:
    """The refusal of a change that only a new object could have."""
    why = "; ".join(f"{field}: {message}" for field, message in error.causes)
    return ImmutableFieldChanged(
        f"{place.title}: {why}. Put the old value back, or set spec.replace: true to have it deleted and made anew",
        tuple(fields),
    )


def path_at(field: str) -> Path:
    """A field as a service names it."""
    try:
        return Path.parse(field.removeprefix("."))
    except ManifestInvalid:
        return Path((field,))
