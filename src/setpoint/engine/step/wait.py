"""The wait of a resource whose object is as declared: what is missing, for how long, and its output.

Nothing here blocks: each step judges what it observes, and the time that a wait has used up is on record. A wait
that was satisfied stays so for the same object, generation and wait; only a value that dependants get is observed
on and on.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from setpoint.core.conditions import ConditionReason
from setpoint.core.unstructured import display_name, text_at
from setpoint.core.values.json_types import MISSING, JsonObject, Missing
from setpoint.core.wait.judge import (
    ObjectFound,
    ObjectNotFound,
    ReadFailed,
    Satisfied,
    TimedOut,
    Unsatisfiable,
    Unsatisfied,
    judge_observation,
)
from setpoint.core.wait.outputs import DISAPPEARED, Null, OutputState, Unknown, from_data, output_of, to_data
from setpoint.core.wait.wait_for import FieldWait, WaitCriterion, WaitFor, satisfaction_key, wait_digest
from setpoint.engine.capabilities import SupportsWait
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.context import KindStepContext
from setpoint.engine.kind import Absent, Intent, LiveObservation, Present
from setpoint.engine.references import OUTPUT
from setpoint.engine.resource import Resource
from setpoint.engine.state import WaitState
from setpoint.errors import RemoteError, StillWaiting, WaitFailed, WaitTimedOut

_WaitError: TypeAlias = StillWaiting | WaitTimedOut | WaitFailed
_REASONS: Final[dict[type[_WaitError], ConditionReason]] = {
    StillWaiting: ConditionReason.WAITING,
    WaitTimedOut: ConditionReason.WAIT_TIMED_OUT,
    WaitFailed: ConditionReason.WAIT_FAILED,
}
# Some objects tell their progress many times a second. A status follows, but not at that pace.
_SECONDS_BETWEEN_TEXTS: Final = 5.0


@dataclass(frozen=True, slots=True)
class WaitResult:
    """How a wait stands. Without `trouble`, nothing is waited for any more; `said` is what the status says of it."""

    output: OutputState
    memory: WaitState | None = None
    trouble: _WaitError | None = None
    said: str = ""

    @property
    def shown(self) -> JsonObject:
        """What the status shows of it."""
        return {OUTPUT: to_data(self.output)}

    @property
    def ready(self) -> ReadyCondition:
        """What the trouble means for the resource."""
        assert self.trouble is not None
        return ReadyCondition("False", _REASONS[type(self.trouble)], self.said)


def wait_result(context: KindStepContext, intent: Intent, look: LiveObservation) -> WaitResult | None:
    """How the wait of a resource stands, by the look at its object; None for kinds that know no waits."""
    kind = context.kind
    if not isinstance(kind, SupportsWait):
        return None
    wait_for = kind.wait_for(context.resource)
    if wait_for is None:
        return WaitResult(Null())
    if isinstance(look, Absent):
        before, now = _output(context.resource), context.engine.clock.now()
        return WaitResult(output_of(wait_for.wait, ObjectNotFound(intent.location), before, now))
    return _WaitEvaluation(context, intent, look, wait_for).made()


async def report_read_failure(context: KindStepContext, error: RemoteError) -> None:
    """The status shows that nobody could look, where others get a value."""
    kind = context.kind
    wait_for = kind.wait_for(context.resource) if isinstance(kind, SupportsWait) else None
    if wait_for is None:
        return
    before, now = _output(context.resource), context.engine.clock.now()
    after = output_of(wait_for.wait, ReadFailed(str(error)), before, now)
    if isinstance(after, Unknown) and not _is_unread(before):
        # As long as it lasts, what went wrong first stays: how each look fails is no news.
        await context.set_outputs({OUTPUT: to_data(after)})


def _is_unread(output: OutputState) -> bool:
    return isinstance(output, Unknown) and output.reason.startswith("the read failed")


def _output(resource: Resource) -> OutputState:
    """What is offered by the status; nothing before the first look."""
    return from_data(resource.status[OUTPUT]) if OUTPUT in resource.status else Null()


@dataclass(frozen=True, slots=True)
class _WaitEvaluation:
    context: KindStepContext
    intent: Intent
    look: Present[Any]
    wait_for: WaitFor

    @property
    def wait(self) -> WaitCriterion:
        return self.wait_for.wait

    def made(self) -> WaitResult:
        satisfied_for = satisfaction_key(self.wait, self.look.whole)
        # Without a uid nothing stays satisfied; its time is one budget all the same.
        key = str(satisfied_for) if satisfied_for is not MISSING else wait_digest(self.wait)
        before = self.context.state.wait
        known = before if before is not None and before.key == key else None
        is_done = known is not None and known.is_done and satisfied_for is not MISSING
        if is_done and not isinstance(self.wait, FieldWait):
            return WaitResult(Null(), known)
        verdict = judge_observation(self.wait, ObjectFound(self.look.whole), self._uid_of(before))
        if isinstance(verdict, Satisfied):
            return WaitResult(self._offered(None, ""), self._done(before, key))
        going_on = self._going_on(before, key)
        begun = self._begun(going_on)
        trouble = self._trouble(verdict, begun)
        said, told = self._said(trouble, going_on)
        on_record = f"{_REASONS[type(trouble)]}: {said}"
        # A generation that somebody else has made is no news of its own.
        kept = going_on.key if going_on is not None else key
        memory = WaitState(kept, self._uid, self.intent.digest, begun, is_done=False, said=on_record, told=told)
        return WaitResult(self._offered(trouble, said), memory, trouble, said)

    @property
    def _now(self) -> str:
        return self.context.engine.clock.now()

    @property
    def _uid(self) -> str:
        return text_at(self.look.whole, "metadata", "uid")

    def _uid_of(self, before: WaitState | None) -> str | Missing:
        """Which object the wait that goes on is for. What is asked for anew, or has another intent, is another wait."""
        if before is None or before.is_done or self.context.anew or before.intent != self.intent.digest:
            return MISSING
        return before.uid or MISSING

    def _done(self, before: WaitState | None, key: str) -> WaitState:
        """What is remembered of a wait that is satisfied. A value is looked at for ever, in whichever generation."""
        is_same = before is not None and before.is_done and before.uid == self._uid
        if before is not None and is_same:
            is_value = isinstance(self.wait, FieldWait) and before.key.rpartition("/")[2] == wait_digest(self.wait)
            if before.key == key or is_value:
                return before
        return WaitState(key, self._uid, self.intent.digest, self._now, is_done=True)

    def _going_on(self, before: WaitState | None, key: str) -> WaitState | None:
        """The wait that goes on; None for one that begins now.

        A generation that somebody else has made gives it no more time: for some kinds every change of a status does.
        """
        if before is None or before.is_done or before.uid != self._uid:
            return None
        is_same_wait = before.key.rpartition("/")[2] == wait_digest(self.wait)
        is_ours = before.key == key or (is_same_wait and before.intent == self.intent.digest)
        return before if is_ours else None

    def _begun(self, known: WaitState | None) -> str:
        """Since when this is waited for: all of the time is left again for what is new, or asked for after its end."""
        if known is None:
            return self._now
        used = _seconds_between(known.since, self._now)
        # A clock that was set back would make it wait for what it was set back by.
        is_over = used >= self.wait_for.timeout_seconds or used < 0
        return self._now if used < 0 or (is_over and self.context.anew) else known.since

    def _trouble(self, verdict: Unsatisfied | Unsatisfiable, begun: str) -> _WaitError:
        match verdict:
            case Unsatisfiable(reason, message):
                return WaitFailed(f"{reason}: {message}")
            case Unsatisfied(missing):
                left = self.wait_for.timeout_seconds - _seconds_between(begun, self._now)
                return StillWaiting(missing, left) if left > 0 else self._timed_out(missing)

    def _timed_out(self, missing: str) -> WaitTimedOut:
        why = f"not within {self.wait_for.timeout_seconds:g} s: {missing}"
        return WaitTimedOut(
            f"{why}. {display_name(self.look.whole)} stays as it is; the next apply goes on waiting, "
            "with all of the time "
            "again",
            why,
        )

    def _said(self, trouble: _WaitError, known: WaitState | None) -> tuple[str, str]:
        """What the status says of the trouble, and since when: news at once, another wording when its time comes."""
        reason, _, said = known.said.partition(": ") if known is not None else ("", "", "")
        if known is not None and reason == _REASONS[type(trouble)]:
            is_early = 0 <= _seconds_between(known.told, self._now) < _SECONDS_BETWEEN_TEXTS
            if is_early or said == str(trouble):
                return said, known.told
        return str(trouble), self._now

    def _offered(self, trouble: _WaitError | None, said: str) -> OutputState:
        before = _output(self.context.resource)
        after = output_of(self.wait, ObjectFound(self.look.whole), before, self._now)
        if isinstance(trouble, WaitTimedOut) and not _has_vanished(after):
            after = output_of(self.wait, TimedOut(trouble.why), before, self._now)
        is_told = isinstance(after, Unknown) and trouble is not None and after.reason == str(trouble)
        return replace(after, reason=said) if isinstance(after, Unknown) and is_told else after


def _has_vanished(output: OutputState) -> bool:
    """Whether it was known: that says more than how long it has been waited for."""
    return isinstance(output, Unknown) and output.last is not MISSING and output.reason == DISAPPEARED


def _seconds_between(before: str, after: str) -> float:
    return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
