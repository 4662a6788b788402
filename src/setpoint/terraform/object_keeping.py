"""Having an object be as planned, and what is stored of it whatever comes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from setpoint.errors import SetpointError, StillWaiting, WaitFailed, WaitTimedOut
from setpoint.terraform.calls import Call, Stored
from setpoint.terraform.cty_values import UNKNOWN, Values
from setpoint.terraform.declared import id_on, source_of
from setpoint.terraform.diagnostics import Diagnostic, Interrupted, Refused, diagnosed, error
from setpoint.terraform.memory import Memory
from setpoint.terraform.object_schema import FAIL
from setpoint.terraform.object_state import object_ref, offered, projection
from setpoint.terraform.wording import told

if TYPE_CHECKING:
    from setpoint.objects.single import Single

_WAITS = StillWaiting | WaitTimedOut | WaitFailed


@dataclass(slots=True)
class Keeping:
    """One apply. `planned` is the state that was planned, with the id under which the object is kept."""

    single: "Single"
    planned: Values
    call: Call

    async def of_a_new_one(self, seconds: float) -> Stored:
        """The state of an object that was not there, or is taken over."""
        trouble = await self._kept(seconds)
        if trouble is None:
            return await self._stored(is_pending=False)
        live = self.single.live
        if live is not None and id_on(live) == self.planned["id"]:
            self.call.keep(await self._stored(is_pending=self.planned.get("on_timeout") != FAIL))
        raise Refused(self._told(trouble)) from trouble

    async def of_an_old_one(self, seconds: float) -> Stored:
        """The state of an object that was there before."""
        trouble = await self._kept(seconds)
        if trouble is None:
            return await self._stored(is_pending=False)
        if isinstance(trouble, _WAITS) or (isinstance(trouble, Interrupted) and self._is_as_planned()):
            self.call.keep(await self._stored(is_pending=True))
        raise Refused(self._told(trouble)) from trouble

    async def _kept(self, seconds: float) -> SetpointError | Interrupted | None:
        try:
            return await self.call.unless_stopped(self.single.keep(seconds))
        except Interrupted as interrupted:
            return interrupted

    def _is_as_planned(self) -> bool:
        live, fields = self.single.live, self.planned.get("projection")
        return live is not None and fields in (UNKNOWN, projection(self.single, live, self.planned))

    async def _stored(self, *, is_pending: bool) -> Stored:
        live, memory = self.single.live, await self.single.memory()
        state = {
            **self.planned,
            "object_ref": object_ref(live),
            "projection": projection(self.single, live, self.planned),
            "status": None if is_pending else offered(memory),
        }
        return Stored(state, Memory(dict(memory), is_pending).to_bytes())

    def _told(self, trouble: SetpointError | Interrupted) -> Diagnostic:
        if isinstance(trouble, Interrupted):
            return diagnosed(trouble)[0]
        said = told(trouble, ("wait_for",) if isinstance(trouble, _WAITS) else (source_of(self.planned),))
        if not isinstance(trouble, _WAITS) or self.planned.get("on_timeout") == FAIL:
            return said
        after = "The object is kept as it is: the next apply goes on waiting for it."
        return error(said.summary, f"{said.detail}\n\n{after}", said.path)
