"""Rollout status of workloads: Deployment, StatefulSet, DaemonSet and Job."""

from collections.abc import Callable
from typing import Final

from setpoint.core.conditions import find_condition
from setpoint.core.unstructured import (
    conditions_of,
    count_at,
    display_name,
    generation_lag,
    group_kind,
    int_at,
    observed_generation,
    text_at,
)
from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.messages import FieldTerm, Message
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import ManifestInvalid


def rollout_pending(live: Json) -> str | None:
    """What the rollout of `live` still waits for; None when it is complete. ManifestInvalid for a kind without one."""
    return _rollout_of(live)(live)


def require_rollout(live: Json) -> None:
    """ManifestInvalid unless objects of this apiVersion and kind have a rollout."""
    _rollout_of(live)


def _rollout_of(live: Json) -> Callable[[Json], str | None]:
    rollout = _ROLLOUTS.get(group_kind(live))
    if rollout is None:
        kinds = ", ".join(f"{kind} ({group})" for group, kind in _ROLLOUTS)
        what = f"{display_name(live)} ({text_at(live, 'apiVersion') or 'no apiVersion'})"
        problem = f": {what} has no rollout; these have: {kinds}. Wait for a condition or a field instead"
        raise ManifestInvalid(Message(FieldTerm("waitFor.rollout"), problem))
    return rollout


def _deployment(live: Json) -> str | None:
    wanted = count_at(live, "spec", "replicas", absent=1)
    left = (
        _not_observed(live)
        or _too_few(count_at(live, "status", "updatedReplicas"), wanted, "updated")
        or _old_replicas(live, wanted)
        or _too_few(count_at(live, "status", "availableReplicas"), wanted, "available")
    )
    paused = get_at(live, Path(("spec", "paused"))) is True
    return f"{left}; the rollout is paused by spec.paused" if left and paused else left


def _stateful_set(live: Json) -> str | None:
    wanted = count_at(live, "spec", "replicas", absent=1)
    partition = count_at(live, "spec", "updateStrategy", "rollingUpdate", "partition")
    to_update = 0 if _updates_on_delete(live) else max(0, wanted - partition)
    # Clusters before 1.22 do not report availability.
    ready = count_at(live, "status", "readyReplicas")
    available = count_at(live, "status", "availableReplicas", absent=ready)
    return (
        _not_observed(live)
        or _too_few(count_at(live, "status", "updatedReplicas"), to_update, "updated")
        or _old_replicas(live, wanted)
        or _too_few(available, wanted, "available")
    )


def _daemon_set(live: Json) -> str | None:
    unseen = _not_observed(live)
    if unseen:
        return unseen
    wanted = int_at(live, "status", "desiredNumberScheduled")
    if wanted is MISSING:
        return "it is not known yet how many nodes it runs on"
    to_update = 0 if _updates_on_delete(live) else wanted
    updated = count_at(live, "status", "updatedNumberScheduled")
    return _too_few(updated, to_update, "updated") or _too_few(
        count_at(live, "status", "numberAvailable"), wanted, "available"
    )


def _job(live: Json) -> str | None:
    complete = find_condition(conditions_of(live), "Complete")
    if complete is not None and complete.status == "True":
        return None
    if get_at(live, Path(("spec", "suspend"))) is True:
        return "the Job is suspended by spec.suspend"
    succeeded = count_at(live, "status", "succeeded")
    return f"{succeeded} of {count_at(live, 'spec', 'completions', absent=1)} completions"


_ROLLOUTS: Final[dict[tuple[str, str], Callable[[Json], str | None]]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
}


def _not_observed(live: Json) -> str | None:
    """Why the status is not current: its counts say nothing about a spec that the controller has not observed."""
    observed = observed_generation(live)
    if observed is MISSING:
        return "the controller has not reported yet"
    behind = generation_lag(live, observed)
    return f"the status is out of date: {behind}" if behind else None


def _too_few(count: int, wanted: int, what: str) -> str | None:
    return f"{count} of {wanted} {_replicas(wanted)} {what}" if count < wanted else None


def _old_replicas(live: Json, wanted: int) -> str | None:
    old = count_at(live, "status", "replicas") - wanted
    return f"{old} old {_replicas(old)} still there" if old > 0 else None


def _replicas(count: int) -> str:
    return "replica" if count == 1 else "replicas"


def _updates_on_delete(live: Json) -> bool:
    """Old pods stay until they are deleted by hand, so the wait does not require updated pods."""
    return text_at(live, "spec", "updateStrategy", "type") == "OnDelete"
