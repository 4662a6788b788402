"""The wait of a resource with its object as declared: what is missing, for how long, and its output.

Nothing here blocks: each step judges what it observes, and the time that a wait has used up is on record. A wait
that was satisfied stays so for the same object, generation and wait; only a value that dependants get is observed
on and on.
"""

from datetime import datetime
from typing import Any, Final, TypeAlias

from setpoint.core.conditions import ConditionReason
from setpoint.core.secret_paths import holds_secret
from setpoint.core.unstructured import display_name, text_at
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import MISSING, JsonObject, Missing
from setpoint.core.values.shortening import shorten
from setpoint.core.wait.judge import (
    JudgeResult,
    ObjectFound,
    ObjectNotFound,
    ReadFailed,
    Satisfied,
    TimedOut,
    Unsatisfiable,
    Unsatisfied,
    judge,
    judge_observation,
)
from setpoint.core.wait.outputs import Null, OutputState, Unknown, UnknownCause, from_data, output_of, to_data
from setpoint.core.wait.wait_for import FieldWait, WaitCriterion, WaitFor, satisfaction_key, wait_digest
from setpoint.engine.capabilities import SupportsWait
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.context import KindStepContext
from setpoint.engine.kind import Absent, Intent, LiveObservation, Present
from setpoint.engine.references import OUTPUT, awaited_object
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState, WaitState
from setpoint.errors import RemoteError, StillWaiting, WaitFailed, WaitTimedOut

_WaitError: TypeAlias = StillWaiting | WaitTimedOut | WaitFailed
_REASONS: Final[dict[type[_WaitError], ConditionReason]] = {
    StillWaiting: ConditionReason.WAITING,
    WaitTimedOut: ConditionReason.WAIT_TIMED_OUT,
    WaitFailed: ConditionReason.WAIT_FAILED,
}
# Some objects report their progress many times a second. A status follows at this interval.
_SECONDS_BETWEEN_TEXTS: Final = 5.0


@dataclass(frozen=True, slots=True)
class WaitResult:
    """The result of a wait. Without an `error` it is satisfied; `text` is the message of the Ready condition."""

    output: OutputState
    state: WaitState | None = None
    error: _WaitError | None = None
    text: str = ""

    @property
    def outputs(self) -> JsonObject:
        """The member of the status with the output."""
        return {OUTPUT: to_data(self.output)}

    @property
    def ready(self) -> ReadyCondition:
        """The Ready condition of a wait that is not satisfied."""
        assert self.error is not None
        return ReadyCondition("False", _REASONS[type(self.error)], self.text)


def wait_result(context: KindStepContext, intent: Intent, observed: LiveObservation) -> WaitResult | None:
    """The result of the wait of a resource, by an observation of its object; None for a kind without waits."""
    kind = context.kind
    if not isinstance(kind, SupportsWait):
        return None
    wait_for = kind.wait_for(context.resource)
    if wait_for is None:
        return WaitResult(Null())
    if isinstance(observed, Absent):
        before, now = _output(context.resource), context.engine.clock.now()
        return WaitResult(output_of(wait_for.wait, ObjectNotFound(intent.location), before, now))
    return _WaitEvaluation(context, intent, observed, wait_for).result()


async def report_read_failure(context: KindStepContext, error: RemoteError) -> None:
    """The output becomes unknown when the object cannot be read, where dependants get a value."""
    kind = context.kind
    wait_for = kind.wait_for(context.resource) if isinstance(kind, SupportsWait) else None
    if wait_for is None:
        return
    before, now = _output(context.resource), context.engine.clock.now()
    after = output_of(wait_for.wait, ReadFailed(str(error)), before, now)
    state = StoredState.of(context.resource)
    if isinstance(after, Unknown) and not (state.read_failed and isinstance(before, Unknown)):
        # The first of several failures in a row stays: how each later read fails is not worth a write.
        await replace(context, state=replace(state, read_failed=True)).save_state({OUTPUT: to_data(after)})


def _output(resource: Resource) -> OutputState:
    """The output in the status; Null before the first observation, and for a secret value of an earlier version."""
    if OUTPUT not in resource.status or holds_secret(awaited_object(resource)):
        return Null()
    return from_data(resource.status[OUTPUT])


@dataclass(frozen=True, slots=True)
class _WaitEvaluation:
    context: KindStepContext
    intent: Intent
    observed: Present[Any]
    wait_for: WaitFor

    @property
    def wait(self) -> WaitCriterion:
        return self.wait_for.wait

    def result(self) -> WaitResult:
        satisfied_for = satisfaction_key(self.wait, self.observed.whole)
        # Without a uid no wait stays satisfied; its timeout counts all the same.
        key = str(satisfied_for) if satisfied_for is not MISSING else wait_digest(self.wait)
        before = self.context.state.wait
        known = before if before is not None and before.key == key else None
        is_done = known is not None and known.is_done and satisfied_for is not MISSING
        if is_done and not isinstance(self.wait, FieldWait):
            return WaitResult(Null(), known)
        judged = judge_observation(self.wait, ObjectFound(self.observed.whole), self._uid_of(before))
        if isinstance(judged, Satisfied):
            return WaitResult(self._output(judged), self._done(before, key))
        under_way = self._under_way(before, key)
        begun = self._begun(under_way)
        error = self._error(judged, begun)
        text, reported_at = self._text(error, under_way)
        # A generation that another writer has made is no new wait.
        kept = under_way.key if under_way is not None else key
        reason = str(_REASONS[type(error)])
        state = WaitState(kept, self._uid, self.intent.digest, begun, False, reason, text, reported_at)
        return WaitResult(self._output(judged, error, text), state, error, text)

    @property
    def _now(self) -> str:
        return self.context.engine.clock.now()

    @property
    def _uid(self) -> str:
        return text_at(self.observed.whole, "metadata", "uid")

    def _uid_of(self, before: WaitState | None) -> str | Missing:
        """The object of the wait that is under way. A wait that is restarted, or of another intent, is another wait."""
        if before is None or before.is_done or self.context.restart_wait or before.intent != self.intent.digest:
            return MISSING
        return before.uid or MISSING

    def _done(self, before: WaitState | None, key: str) -> WaitState:
        """The state of a wait that is satisfied. A value is observed on and on, in any generation."""
        is_same = before is not None and before.is_done and before.uid == self._uid
        if before is not None and is_same:
            is_value = isinstance(self.wait, FieldWait) and before.key.rpartition("/")[2] == wait_digest(self.wait)
            if before.key == key or is_value:
                return before
        return WaitState(key, self._uid, self.intent.digest, self._now, is_done=True)

    def _under_way(self, before: WaitState | None, key: str) -> WaitState | None:
        """The wait that is under way; None for one that begins now.

        A generation that another writer has made does not restart its timeout: for some kinds every change of a status
        makes a new generation.
        """
        if before is None or before.is_done or before.uid != self._uid:
            return None
        is_same_wait = before.key.rpartition("/")[2] == wait_digest(self.wait)
        is_ours = before.key == key or (is_same_wait and before.intent == self.intent.digest)
        return before if is_ours else None

    def _begun(self, known: WaitState | None) -> str:
        """Since when the wait is under way: now for a new one, or for one that is restarted after its timeout."""
        if known is None:
            return self._now
        used = _seconds_between(known.since, self._now)
        # A clock that was set back must not prolong the wait.
        is_over = used >= self.wait_for.timeout_seconds or used < 0
        return self._now if used < 0 or (is_over and self.context.restart_wait) else known.since

    def _error(self, judged: Unsatisfied | Unsatisfiable, begun: str) -> _WaitError:
        match judged:
            case Unsatisfiable(reason, message):
                return WaitFailed(f"{reason}: {message}")
            case Unsatisfied(missing):
                left = self.wait_for.timeout_seconds - _seconds_between(begun, self._now)
                return StillWaiting(missing, left) if left > 0 else self._timed_out(missing)

    def _timed_out(self, missing: str) -> WaitTimedOut:
        why = f"not within {self.wait_for.timeout_seconds:g} s: {missing}"
        return WaitTimedOut(
            f"{why}. {display_name(self.observed.whole)} stays as it is; "
            "the next apply goes on waiting, with all of the time again",
            why,
        )

    def _text(self, error: _WaitError, known: WaitState | None) -> tuple[str, str]:
        """The text of the Ready condition, and when it was set: a new reason at once, a new text at intervals."""
        if known is not None and known.reason == _REASONS[type(error)]:
            is_early = 0 <= _seconds_between(known.reported_at, self._now) < _SECONDS_BETWEEN_TEXTS
            if is_early or known.text == shorten(str(error)):
                return known.text, known.reported_at
        return shorten(str(error)), self._now

    def _output(self, judged: JudgeResult, error: _WaitError | None = None, text: str = "") -> OutputState:
        """The output; where it is unknown for the reason of the Ready condition, with the text of that."""
        before = _output(self.context.resource)
        after = output_of(self.wait, ObjectFound(self.observed.whole), before, self._now)
        if not isinstance(after, Unknown) or error is None:
            return after
        # That a known value is gone says more than how long it has been waited for.
        if isinstance(error, WaitTimedOut) and after.cause is not UnknownCause.DISAPPEARED:
            return output_of(self.wait, TimedOut(error.why), before, self._now)
        is_unsatisfied = after.cause in (UnknownCause.UNSATISFIED, UnknownCause.UNSATISFIABLE)
        is_same = is_unsatisfied and judge(self.wait, self.observed.whole) == judged
        return replace(after, reason=text) if is_same else after


def _seconds_between(before: str, after: str) -> float:
    return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
