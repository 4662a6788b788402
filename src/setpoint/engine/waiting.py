"""Waiting for what becomes of an object that is as declared: what is still missing, for how long, and what others get.

Nothing here blocks: each step judges what it sees, and the time that a wait has used up is on record. A wait that was
satisfied stays so for the same object, generation and wait, whatever becomes of it later; only a value that others get
is looked at for ever.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from setpoint.core.kubernetes import text_at, title
from setpoint.core.outputs import Null, Output, from_data, output_of, to_data
from setpoint.core.verdict import Failed, ReadFailed, Satisfied, Seen, TimedOut, Verdict, Waiting, judge
from setpoint.core.wait_for import FieldWait, Wait, WaitFor, satisfaction_key
from setpoint.engine.abilities import Awaited
from setpoint.engine.kind import Intent, Present
from setpoint.engine.references import OUTPUT
from setpoint.engine.remembered import WaitMemory
from setpoint.engine.report import Ready
from setpoint.engine.resource import Resource, Tree
from setpoint.engine.scene import Scene
from setpoint.errors import RemoteError, SetpointError, StillWaiting, WaitFailed, WaitTimedOut

WAITING, TIMED_OUT, FAILED = "Waiting", "WaitTimedOut", "WaitFailed"
_Trouble: TypeAlias = StillWaiting | WaitTimedOut | WaitFailed
_REASONS: Final[dict[type[_Trouble], str]] = {StillWaiting: WAITING, WaitTimedOut: TIMED_OUT, WaitFailed: FAILED}


@dataclass(frozen=True, slots=True)
class Waited:
    """How a wait stands. Without `trouble`, nothing is waited for any more."""

    output: Output
    memory: WaitMemory | None = None
    trouble: _Trouble | None = None

    @property
    def shown(self) -> Tree:
        """What the status shows of it."""
        return {OUTPUT: to_data(self.output)}


def how_it_waits(trouble: SetpointError) -> Ready:
    """What the trouble of a wait means for its resource."""
    reason = next(reason for kind, reason in _REASONS.items() if isinstance(trouble, kind))
    return Ready("False", reason, str(trouble))


def waited(scene: Scene, intent: Intent, look: Present[Any]) -> Waited | None:
    """How the wait of a resource stands whose object is as it was seen; None for kinds that know no waits."""
    kind = scene.kind
    if not isinstance(kind, Awaited):
        return None
    wait_for = kind.wait_for(scene.resource)
    if wait_for is None:
        return Waited(Null())
    return _Judgement(scene, intent, look, wait_for).made()


def unread(scene: Scene, error: SetpointError) -> Tree | None:
    """What the status shows after nobody could look; None when that is nothing new."""
    kind = scene.kind
    if not isinstance(kind, Awaited) or not isinstance(error, RemoteError):
        return None
    wait_for = kind.wait_for(scene.resource)
    if wait_for is None or not isinstance(wait_for.wait, FieldWait):
        return None
    before = _output(scene.resource)
    after = output_of(wait_for.wait, ReadFailed(str(error)), before, scene.world.clock.now())
    return {OUTPUT: to_data(after)}


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
        before, key = self.scene.remembered.wait, str(satisfaction_key(self.wait, self.look.whole))
        replaced = self._replaced(before)
        known = before if before is not None and before.key == key else None
        if known is not None and known.is_done and not isinstance(self.wait, FieldWait):
            return Waited(Null(), known)
        now = self.scene.world.clock.now()
        verdict = judge(self.wait, self.look.whole)
        if isinstance(verdict, Satisfied) and replaced is None:
            return Waited(self._output(None), WaitMemory(key, self._uid, self.intent.digest, now, is_done=True))
        begun = now if known is None or known.is_done or self.scene.anew else known.since
        memory = WaitMemory(key, self._uid, self.intent.digest, begun, is_done=False)
        trouble = WaitFailed(replaced) if replaced is not None else self._trouble(verdict, begun)
        return Waited(self._output(trouble), memory, trouble)

    @property
    def _uid(self) -> str:
        return text_at(self.look.whole, "metadata", "uid")

    def _replaced(self, before: WaitMemory | None) -> str | None:
        """Why the wait that was going on is over: it was for another object than there is now."""
        if before is None or before.is_done or before.uid == self._uid or before.intent != self.intent.digest:
            return None
        return (
            f"{title(self.look.whole)} was deleted or replaced while it was waited for; it is there again, and another "
            "run waits for it"
        )

    def _trouble(self, verdict: Verdict, begun: str) -> _Trouble:
        match verdict:
            case Failed(reason, message):
                return WaitFailed(f"{reason}: {message}")
            case Waiting(missing):
                left = self.wait_for.timeout_seconds - _seconds_between(begun, self.scene.world.clock.now())
                return StillWaiting(missing, left) if left > 0 else self._timed_out(missing)
            case Satisfied():
                raise AssertionError("what was waited for is there")

    def _timed_out(self, missing: str) -> WaitTimedOut:
        seconds = self.wait_for.timeout_seconds
        return WaitTimedOut(
            f"not within {seconds:g} s: {missing}; {title(self.look.whole)} stays, and is waited for on"
        )

    def _output(self, trouble: _Trouble | None) -> Output:
        before, now = _output(self.scene.resource), self.scene.world.clock.now()
        seen = TimedOut(str(trouble)) if isinstance(trouble, WaitTimedOut) else Seen(self.look.whole)
        return output_of(self.wait, seen, before, now)


def _seconds_between(before: str, after: str) -> float:
    return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
