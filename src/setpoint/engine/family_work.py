"""What one step of an owner has to do, as a plan: told before anything is written."""

from dataclasses import dataclass, replace

from setpoint.core.decide import Decision, decide
from setpoint.core.plan import Plan
from setpoint.core.reviews import Review
from setpoint.engine import report
from setpoint.engine.contest import Contest
from setpoint.engine.family import Family, Reviews, reviewed
from setpoint.engine.scene import Moment


@dataclass(frozen=True, slots=True)
class Work:
    """What one step has to do: a look at the family, its reviews, and the plan that they come to."""

    family: Family
    reviews: Reviews
    plan: Plan
    # The keys of the children that are not written now, though they differ: they are contested.
    withheld: frozenset[str] = frozenset()

    @property
    def to_write(self) -> tuple[Review, ...]:
        """The reviews that come to a write, in order."""
        return tuple(one for one in self.reviews.each if one.write is not None and one.child.key not in self.withheld)


def work_for(moment: Moment, family: Family) -> Work:
    """What is left to do; nothing when both digests match."""
    memory = moment.remembered
    decision = decide(memory.cookie, family.intent, family.live_digest)
    if decision is Decision.IN_SYNC and memory.generating is None:
        return Work(family, Reviews(), Plan(decision))
    reviews = reviewed(family, memory.generating)
    writes = tuple(one.write for one in reviews.each if one.write is not None)
    kept = tuple(change for one in reviews.each for change in one.kept)
    work = Work(family, reviews, Plan(decision, writes, kept))
    waiting = () if moment.asked else memory.contests.waiting(work.plan.changes, moment.world.clock.now())
    return _withholding(waiting, work) if waiting else work


def _withholding(waiting: tuple[Contest, ...], work: Work) -> Work:
    """The work without the children in which somebody insists on something else, until their time has come."""
    paths = {contest.path for contest in waiting}
    keys = frozenset(
        write.name for write in work.plan.writes if any(str(change.path) in paths for change in write.changes)
    )
    left = tuple(write for write in work.plan.writes if write.name not in keys)
    held = tuple(change for write in work.plan.writes if write.name in keys for change in write.changes)
    because = report.not_yet([str(one.path) for one in held], min(contest.not_before for contest in waiting))
    return replace(work, plan=replace(work.plan, writes=left, withheld=held, because=because), withheld=keys)
