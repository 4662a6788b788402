"""Event predicates: whether a change of a resource triggers a reconcile of it, of its dependants or of its owner."""

from typing import Final, NamedTuple

from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.workqueue.scheduling import Priority


class ReconcileTrigger(NamedTuple):
    """Why a resource is looked at, for the queue and for people."""

    priority: Priority
    trigger: str


RESYNC: Final = ReconcileTrigger(Priority.RESYNC, "the next regular look")
LISTED_CHANGE: Final = ReconcileTrigger(Priority.DRIFT, "a change that a list shows")
SHARD_ACQUIRED: Final = ReconcileTrigger(Priority.START_UP, "the acquisition of its shard")
_START_UP: Final = ReconcileTrigger(Priority.START_UP, "the start of the process")


def trigger_for(news: ResourceEvent) -> ReconcileTrigger | None:
    """Why to look; None when nobody but the engine changed anything, or the resource is no more."""
    before, after = news.before, news.after
    if after is None:
        return None
    if news.is_first:
        # Once up to date, it is to be left alone.
        return None if after.mean == 0 and after.is_ready else _START_UP
    if before is None or before.uid != after.uid:
        return ReconcileTrigger(Priority.EDIT, "its declaration")
    if before.generation != after.generation:
        return ReconcileTrigger(Priority.EDIT, "a change of its spec")
    if (before.is_deleting, before.is_held) != (after.is_deleting, after.is_held):
        return ReconcileTrigger(Priority.EDIT, "its deletion")
    if before.said != after.said:
        return ReconcileTrigger(Priority.EDIT, "a change of its annotations or labels")
    return None


def affects_dependants(news: ResourceEvent) -> bool:
    """Whether those that need the resource may find it different: it came, went, got ready or shows other outputs."""
    before, after = news.before, news.after
    if before is None or after is None:
        return True
    return (before.uid, before.shown) != (after.uid, after.shown)


def affects_owners(news: ResourceEvent) -> bool:
    """Whether the owner of a child may have something to do or to say: not when only the child's own memory moved."""
    before, after = news.before, news.after
    if before is None or after is None or news.changed_hands:
        return True
    return (before.generation, before.said) != (after.generation, after.said) or affects_dependants(news)


def trigger_for_dependants(news: ResourceEvent) -> ReconcileTrigger:
    """Why those that need the resource look again."""
    what = "is gone" if news.after is None else "is ready" if news.after.is_ready else "has changed"
    return ReconcileTrigger(Priority.DEPENDENCY, f"{news.ref} {what}")
