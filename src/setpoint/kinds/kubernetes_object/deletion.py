"""Objects being deleted: which finalizers hold them, and when that counts as a timeout."""

from datetime import datetime, timedelta
from typing import Final

from setpoint.core.conditions import Condition
from setpoint.core.unstructured import conditions_of, count_at, text_at
from setpoint.core.values.json_types import Json
from setpoint.core.values.messages import FieldTerm, Message
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import StillWaiting, UserError, WaitTimedOut
from setpoint.kinds.kubernetes_object.location import ObjectLocation
from setpoint.kinds.kubernetes_object.options import DELETE_PROTECTION, DeletionSettings

# What Kubernetes' own finalizers wait for.
_FINALIZER_MEANING: Final = {
    "foregroundDeletion": "until what it owns is gone",
    "orphan": "until what it owns is let go",
    "kubernetes": "until what is in it is gone",
    "kubernetes.io/pvc-protection": "while a pod uses it",
    "kubernetes.io/pv-protection": "while a claim is bound to it",
    "customresourcecleanup.apiextensions.k8s.io": "until its custom resources are gone",
}


def is_deleting(live: Json) -> bool:
    """Whether the object is being deleted."""
    return bool(text_at(live, "metadata", "deletionTimestamp"))


def require_unprotected(deletion: DeletionSettings, location: ObjectLocation) -> None:
    """UserError for an object that must not be deleted."""
    if deletion.is_protected:
        advice = (
            f': annotate the resource with {DELETE_PROTECTION}: "false" and apply it, or let the object stay with '
            "deletion-policy: abandon"
        )
        raise UserError(Message(f"{location.title} is protected by ", FieldTerm("spec.deleteProtection"), advice))


def pending_deletion(
    live: Json, location: ObjectLocation, deletion: DeletionSettings, now: str
) -> StillWaiting | WaitTimedOut:
    """The error for an object that is still being deleted: WaitTimedOut after the deletion timeout."""
    left = deletion.seconds - (datetime.fromisoformat(now) - _requested_at(live, now)).total_seconds()
    message = f"{location.title} is being deleted; {_blockers(live)}"
    return StillWaiting(message, left) if left > 0 else WaitTimedOut(f"not within {deletion.seconds:g} s: {message}")


def _requested_at(live: Json, now: str) -> datetime:
    """When the deletion was requested: deletionTimestamp is the end of the grace period."""
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
    message = f"held by the finalizer{'s' * (len(held) > 1)} {', '.join(held)}" if held else "no finalizer holds it"
    return "; ".join((message, *why))


def _explains(condition: Condition) -> bool:
    return condition.status == "True" and condition.type.startswith("Namespace")
