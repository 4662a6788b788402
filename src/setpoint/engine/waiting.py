"""Waiting for what becomes of an object that is as declared: what is still missing, for how long, and what others get.

Nothing here blocks: each step judges what it sees, and the time that a wait has used up is on record. A wait that was
satisfied stays so for the same object, generation and wait, whatever becomes of it later; only a value that others get
is looked at for ever.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from setpoint.core.kubernetes import text_at, title
from setpoint.core.outputs import DISAPPEARED, Null, Output, Unknown, from_data, output_of, to_data
from setpoint.core.values import MISSING, Missing
from setpoint.core.verdict import (
    Failed,
    NotThere,
    ReadFailed,
    Satisfied,
    Seen,
    TimedOut,
    Waiting,
    judge_observed,
)
from setpoint.core.wait_for import FieldWait, Wait, WaitFor, satisfaction_key, wait_digest
from setpoint.engine.abilities import Awaited
from setpoint.engine.kind import Absent, Intent, Look, Present
from setpoint.engine.references import OUTPUT
from setpoint.engine.remembered import WaitMemory
from setpoint.engine.report import Ready
from setpoint.engine.resource import Resource, Tree
from setpoint.engine.scene import Scene
from setpoint.errors import RemoteError, StillWaiting, WaitFailed, WaitTimedOut

_Trouble: TypeAlias = StillWaiting | WaitTimedOut | WaitFailed
_REASONS: Final[dict[type[_Trouble], str]] = {
    StillWaiting: "Waiting",
    WaitTimedOut: "WaitTimedOut",
    WaitFailed: "WaitFailed",
}
# Some objects tell their progress many times a second. A status follows, but not at that pace.
_SECONDS_BETWEEN_TEXTS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Waited:
    """How a wait stands. Without `trouble`, nothing is waited for any more; `said` is what the status says of it."""

    output: Output
    memory: WaitMemory | None = None
    trouble: _Trouble | None = None
    said: str = ""

    @property
    def shown(self) -> Tree:
        """What the status shows of it."""
        return {OUTPUT: to_data(self.output)}

    @property
    def ready(self) -> Ready:
        """What the trouble means for the resource."""
        assert self.trouble is not None
        return Ready("False", _REASONS[type(self.trouble)], self.said)


def waited(scene: Scene, intent: Intent, look: Look) -> Waited | None:
    """How the wait of a resource stands, by the look at its object; None for kinds that know no waits."""
    kind = scene.kind
    if not isinstance(kind, Awaited):
        return None
    wait_for = kind.wait_for(scene.resource)
    if wait_for is None:
        return Waited(Null())
    if isinstance(look, Absent):
        before, now = _output(scene.resource), scene.world.clock.now()
        return Waited(output_of(wait_for.wait, NotThere(intent.location), before, now))
    return _Judgement(scene, intent, look, wait_for).made()


async def show_unread(scene: Scene, error: RemoteError) -> None:
    """The status shows that nobody could look, where others get a value."""
    kind = scene.kind
    wait_for = kind.wait_for(scene.resource) if isinstance(kind, Awaited) else None
    if wait_for is None:
        return
    before, now = _output(scene.resource), scene.world.clock.now()
    after = output_of(wait_for.wait, ReadFailed(str(error)), before, now)
    if isinstance(after, Unknown) and not _is_unread(before):
        # As long as it lasts, what went wrong first stays: how each look fails is no news.
        await scene.show({OUTPUT: to_data(after)})


def _is_unread(output: Output) -> bool:
    return isinstance(output, Unknown) and output.reason.startswith("the read failed")


def _output(resource: Resource) -> Output:
    """What is offered by the status; nothing before the first look."""
    return from_data(resource.status[OUTPUT]) if OUTPUT in resource.status else Null()


@dataclass(frozen=True, slots=True)
class _Judgement:
    scene: Scene
    intent: Intent
    look: Present[Any]
    wait_for: WaitFor

    @property
    def wait(self) -> Wait:
        return self.wait_for.wait

    def made(self) -> Waited:
        satisfied_for = satisfaction_key(self.wait, self.look.whole)
        # Without a uid nothing stays satisfied; its time is one budget all the same.
        key = str(satisfied_for) if satisfied_for is not MISSING else wait_digest(self.wait)
        before = self.scene.remembered.wait
        known = before if before is not None and before.key == key else None
        is_done = known is not None and known.is_done and satisfied_for is not MISSING
        if is_done and not isinstance(self.wait, FieldWait):
            return Waited(Null(), known)
        verdict = judge_observed(self.wait, Seen(self.look.whole), self._uid_of(before))
        if isinstance(verdict, Satisfied):
            return Waited(self._offered(None, ""), self._done(before, key))
        going_on = self._going_on(before, key)
        begun = self._begun(going_on)
        trouble = self._trouble(verdict, begun)
        said, told = self._said(trouble, going_on)
        on_record = f"{_REASONS[type(trouble)]}: {said}"
        # A generation that somebody else has made is no news of its own.
        kept = going_on.key if going_on is not None else key
        memory = WaitMemory(kept, self._uid, self.intent.digest, begun, is_done=False, said=on_record, told=told)
        return Waited(self._offered(trouble, said), memory, trouble, said)

    @property
    def _now(self) -> str:
        return self.scene.world.clock.now()

    @property
    def _uid(self) -> str:
        return text_at(self.look.whole, "metadata", "uid")

    def _uid_of(self, before: WaitMemory | None) -> str | Missing:
        """Which object the wait that goes on is for. What is asked for anew, or has another intent, is another wait."""
        if before is None or before.is_done or self.scene.anew or before.intent != self.intent.digest:
            return MISSING
        return before.uid or MISSING

    def _done(self, before: WaitMemory | None, key: str) -> WaitMemory:
        """What is remembered of a wait that is satisfied. A value is looked at for ever, in whichever generation."""
        is_same = before is not None and before.is_done and before.uid == self._uid
        if before is not None and is_same:
            is_value = isinstance(self.wait, FieldWait) and before.key.rpartition("/")[2] == wait_digest(self.wait)
            if before.key == key or is_value:
                return before
        return WaitMemory(key, self._uid, self.intent.digest, self._now, is_done=True)

    def _going_on(self, before: WaitMemory | None, key: str) -> WaitMemory | None:
        """The wait that goes on; None for one that begins now.

        A generation that somebody else has made gives it no more time: for some kinds every change of a status does.
        """
        if before is None or before.is_done or before.uid != self._uid:
            return None
        is_same_wait = before.key.rpartition("/")[2] == wait_digest(self.wait)
        is_ours = before.key == key or (is_same_wait and before.intent == self.intent.digest)
        return before if is_ours else None

    def _begun(self, known: WaitMemory | None) -> str:
        """Since when this is waited for: all of the time is left again for what is new, or asked for after its end."""
        if known is None:
            return self._now
        used = _seconds_between(known.since, self._now)
        # A clock that was set back would make it wait for what it was set back by.
        is_over = used >= self.wait_for.timeout_seconds or used < 0
        return self._now if used < 0 or (is_over and self.scene.anew) else known.since

    def _trouble(self, verdict: Waiting | Failed, begun: str) -> _Trouble:
        match verdict:
            case Failed(reason, message):
                return WaitFailed(f"{reason}: {message}")
            case Waiting(missing):
                left = self.wait_for.timeout_seconds - _seconds_between(begun, self._now)
                return StillWaiting(missing, left) if left > 0 else self._timed_out(missing)

    def _timed_out(self, missing: str) -> WaitTimedOut:
        why = f"not within {self.wait_for.timeout_seconds:g} s: {missing}"
        return WaitTimedOut(
            f"{why}. {title(self.look.whole)} stays as it is; the next apply goes on waiting, with all of the time "
            "again",
            why,
        )

    def _said(self, trouble: _Trouble, known: WaitMemory | None) -> tuple[str, str]:
        """What the status says of the trouble, and since when: news at once, another wording when its time comes."""
        reason, _, said = known.said.partition(": ") if known is not None else ("", "", "")
        if known is not None and reason == _REASONS[type(trouble)]:
            is_early = 0 <= _seconds_between(known.told, self._now) < _SECONDS_BETWEEN_TEXTS
            if is_early or said == str(trouble):
                return said, known.told
        return str(trouble), self._now

    def _offered(self, trouble: _Trouble | None, said: str) -> Output:
        before = _output(self.scene.resource)
        after = output_of(self.wait, Seen(self.look.whole), before, self._now)
        if isinstance(trouble, WaitTimedOut) and not _has_vanished(after):
            after = output_of(self.wait, TimedOut(trouble.why), before, self._now)
        is_told = isinstance(after, Unknown) and trouble is not None and after.reason == str(trouble)
        return replace(after, reason=said) if isinstance(after, Unknown) and is_told else after


def _has_vanished(output: Output) -> bool:
    """Whether it was known: that says more than how long it has been waited for."""
    return isinstance(output, Unknown) and output.last is not MISSING and output.reason == DISAPPEARED


def _seconds_between(before: str, after: str) -> float:
    return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
