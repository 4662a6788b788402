"""Objects being deleted: which finalizers hold them, and when that counts as a timeout."""

from datetime import datetime, timedelta
from typing import Final

from setpoint.core.conditions import Condition
from setpoint.core.unstructured import conditions_of, count_at, text_at
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import StillWaiting, UserError, WaitTimedOut
from setpoint.kinds.kubernetes_object.clusters import ObjectLocation
from setpoint.kinds.kubernetes_object.options import DELETE_PROTECTION, DeletionSettings

# What those of Kubernetes itself wait for.
_FINALIZER_MEANING: Final = {
    "foregroundDeletion": "until what it owns is gone",
    "orphan": "until what it owns is let go",
    "kubernetes": "until what is in it is gone",
    "kubernetes.io/pvc-protection": "while a pod uses it",
    "kubernetes.io/pv-protection": "while a claim is bound to it",
    "customresourcecleanup.apiextensions.k8s.io": "until its custom resources are gone",
}


def is_deleting(live: Json) -> bool:
    """Whether somebody asked for its deletion."""
    return bool(text_at(live, "metadata", "deletionTimestamp"))


def require_unprotected(removal: DeletionSettings, place: ObjectLocation) -> None:
    """UserError for an object that must not be deleted."""
    if removal.is_protected:
        raise UserError(
            f"{place.title} is protected by spec.deleteProtection: annotate the resource with "
            f'{DELETE_PROTECTION}: "false" and apply it, or let the object stay with deletion-policy: abandon'
        )


def pending_deletion(
    live: Json, place: ObjectLocation, removal: DeletionSettings, now: str
) -> StillWaiting | WaitTimedOut:
    """What there is to say of an object that was deleted and is there: after its time that is a failure."""
    left = removal.seconds - (datetime.fromisoformat(now) - _requested_at(live, now)).total_seconds()
    told = f"{place.title} is being deleted; {_blockers(live)}"
    return StillWaiting(told, left) if left > 0 else WaitTimedOut(f"not within {removal.seconds:g} s: {told}")


def _requested_at(live: Json, now: str) -> datetime:
    """When the deletion was asked for: its time stamp is when the grace period ends."""
    grace = count_at(live, "metadata", "deletionGracePeriodSeconds")
    ends = datetime.fromisoformat(text_at(live, "metadata", "deletionTimestamp") or now)
    return ends - timedelta(seconds=grace)


def _finalizers(live: Json) -> tuple[str, ...]:
    found = [get_at(live, Path((part, "finalizers"))) for part in ("metadata", "spec")]
    own = found[:1] if text_at(live, "kind") != "Namespace" else found
    return tuple(str(one) for some in own if isinstance(some, list) for one in some)


def _blockers(live: Json) -> str:
    held = [f"{one} ({_FINALIZER_MEANING[one]})" if one in _FINALIZER_MEANING else one for one in _finalizers(live)]
    why = [one.message for one in conditions_of(live) if _explains(one)] if text_at(live, "kind") == "Namespace" else []
    told = f"held by the finalizer{'s' * (len(held) > 1)} {', '.join(held)}" if held else "no finalizer holds it"
    return "; ".join((told, *why))


def _explains(condition: Condition) -> bool:
    return condition.status == "True" and condition.type.startswith("Namespace")
