"""What news means for the resource itself: whether it is to be looked at, how soon, and why."""

from typing import Final, NamedTuple

from setpoint.runtime.informer import News
from setpoint.runtime.priorities import Priority


class Reason(NamedTuple):
    """Why a resource is looked at, for the queue and for people."""

    priority: Priority
    trigger: str


RESYNC: Final = Reason(Priority.RESYNC, "the next regular look")
SHOWN: Final = Reason(Priority.DRIFT, "a change that a list shows")
ACQUIRED: Final = Reason(Priority.START_UP, "the acquisition of its shard")
_START: Final = Reason(Priority.START_UP, "the start of the process")


def reason_for(news: News) -> Reason | None:
    """Why to look; None when nobody but the engine changed anything, or the resource is no more."""
    before, after = news.before, news.after
    if after is None:
        return None
    if news.is_first:
        # Once up to date, it is to be left alone.
        return None if after.mean == 0 and after.is_ready else _START
    if before is None or before.uid != after.uid:
        return Reason(Priority.EDIT, "its declaration")
    if before.generation != after.generation:
        return Reason(Priority.EDIT, "a change of its spec")
    if (before.is_deleting, before.is_held) != (after.is_deleting, after.is_held):
        return Reason(Priority.EDIT, "its deletion")
    if before.said != after.said:
        return Reason(Priority.EDIT, "a change of its annotations or labels")
    return None


def concerns_others(news: News) -> bool:
    """Whether those that need the resource may find it different: it came, went, got ready or shows other outputs."""
    before, after = news.before, news.after
    if before is None or after is None:
        return True
    return (before.uid, before.shown) != (after.uid, after.shown)


def concerns_owners(news: News) -> bool:
    """Whether the owner of a child may have something to do or to say: not when only the child's own memory moved."""
    before, after = news.before, news.after
    if before is None or after is None or news.changed_hands:
        return True
    return (before.generation, before.said) != (after.generation, after.said) or concerns_others(news)


def reason_for_others(news: News) -> Reason:
    """Why those that need the resource look again."""
    what = "is gone" if news.after is None else "is ready" if news.after.is_ready else "has changed"
    return Reason(Priority.DEPENDENCY, f"{news.ref} {what}")
