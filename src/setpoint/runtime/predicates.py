"""Event predicates: whether a change of a resource triggers a reconcile of it, of its dependants or of its owner."""

from typing import Final, NamedTuple

from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.workqueue.scheduling import Priority


class ReconcileTrigger(NamedTuple):
    """Why a resource is reconciled: the priority for the queue, and the text that `setpoint explain` shows."""

    priority: Priority
    trigger: str


RESYNC: Final = ReconcileTrigger(Priority.RESYNC, "the regular resync")
LISTED_CHANGE: Final = ReconcileTrigger(Priority.DRIFT, "a change that a list shows")
SHARD_ACQUIRED: Final = ReconcileTrigger(Priority.START_UP, "the acquisition of its shard")
# Of a resource of another tenant not even the name is told: the reference may not be granted.
FOREIGN_CHANGE: Final = ReconcileTrigger(Priority.DEPENDENCY, "a change in another namespace")
GRANT_CHANGED: Final = ReconcileTrigger(Priority.DEPENDENCY, "a change of the grants of another namespace")
CLAIM_RELEASED: Final = ReconcileTrigger(Priority.DEPENDENCY, "the release of its object by another resource")
FINALIZER_REMOVED: Final = ReconcileTrigger(Priority.DRIFT, "the removal of its finalizer by another writer")
STATUS_EDITED: Final = ReconcileTrigger(Priority.DRIFT, "a change of its status by another writer")
DEFINITION_CHANGED: Final = ReconcileTrigger(Priority.DEPENDENCY, "a change of the definition of its kind")
OPERATION_TURN: Final = ReconcileTrigger(Priority.DEPENDENCY, "the end of another operation on its parent")
NAMESPACE_CHANGED: Final = ReconcileTrigger(Priority.DEPENDENCY, "a change of its Namespace")
_START_UP: Final = ReconcileTrigger(Priority.START_UP, "the start of the process")


def trigger_for(event: ResourceEvent) -> ReconcileTrigger | None:
    """The trigger for the resource itself; None when only the engine changed it, or it is gone."""
    before, after = event.before, event.after
    if after is None:
        return None
    if event.is_initial:
        # Without a resync, a resource that is in sync is not reconciled again.
        is_kept = not after.lacks_finalizer and not after.is_status_edited
        is_idle = after.resync_seconds == 0 and after.is_ready and is_kept
        return None if is_idle else _START_UP
    if before is None or before.uid != after.uid:
        return ReconcileTrigger(Priority.EDIT, "its declaration")
    if before.generation != after.generation:
        return ReconcileTrigger(Priority.EDIT, "a change of its spec")
    if (before.is_deleting, before.is_held) != (after.is_deleting, after.is_held):
        return ReconcileTrigger(Priority.EDIT, "its deletion")
    if before.metadata_hash != after.metadata_hash:
        return ReconcileTrigger(Priority.EDIT, "a change of its annotations or labels")
    return None


def lacks_finalizer(event: ResourceEvent) -> bool:
    """Whether the resource has an object, and would leave it behind if it were deleted now."""
    return event.after is not None and event.after.lacks_finalizer


def changes_status(event: ResourceEvent) -> bool:
    """Whether the status changed, by whichever writer."""
    before, after = event.before, event.after
    if before is None or after is None or event.is_initial:
        return False
    return before.uid == after.uid and before.status_hash != after.status_hash


def affects_dependants(event: ResourceEvent) -> bool:
    """Whether dependants may see a difference: the resource came, went, got ready or has other outputs."""
    before, after = event.before, event.after
    if before is None or after is None:
        return True
    return (before.uid, before.dependant_hash) != (after.uid, after.dependant_hash)


def affects_owners(event: ResourceEvent) -> bool:
    """Whether the owner of a child is to be reconciled: not when only the child's own stored state changed."""
    before, after = event.before, event.after
    if before is None or after is None or event.owner_changed:
        return True
    return (before.generation, before.metadata_hash) != (after.generation, after.metadata_hash) or affects_dependants(
        event
    )


def trigger_for_dependants(event: ResourceEvent) -> ReconcileTrigger:
    """The trigger for dependants and owners of the resource."""
    what = "is gone" if event.after is None else "is ready" if event.after.is_ready else "has changed"
    return ReconcileTrigger(Priority.DEPENDENCY, f"{event.ref} {what}")
