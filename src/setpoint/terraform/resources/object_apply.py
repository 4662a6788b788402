"""The apply of one `setpoint_object`: reconcile, wait, and the state that comes of it."""

from typing import TYPE_CHECKING, Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.wait.wait_for import parse_wait
from setpoint.errors import (
    RemoteConflict,
    RemoteRefused,
    SetpointError,
    StillWaiting,
    WaitFailed,
    WaitTimedOut,
)
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, is_known
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.consistency import deviation_error, deviations
from setpoint.terraform.framework.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    Interrupted,
)
from setpoint.terraform.framework.schema import schema_type
from setpoint.terraform.resources.object_config import (
    annotated_id,
    ignored_paths,
    manifest_attribute,
    wait_spec,
)
from setpoint.terraform.resources.object_diagnostics import managed_elsewhere_error, wait_diagnostic, write_diagnostic
from setpoint.terraform.resources.object_state import (
    PrivateState,
    engine_state,
    object_ref,
    projection,
    wait_output,
)
from setpoint.terraform.resources.schemas import FAIL, OBJECT_SCHEMA
from setpoint.terraform.resources.shown_values import shown_fields
from setpoint.terraform.resources.vocabulary import engine_diagnostic

if TYPE_CHECKING:
    from setpoint.objects.session import ObjectSession

# How long an apply may take besides its wait: until its kind is served, and until finalizers are observed.
GRACE_S: Final = 60.0
_WAIT_ERRORS = StillWaiting | WaitTimedOut | WaitFailed


def apply_timeout(planned: AttributeValues) -> float:
    """How long an apply of this state may take: the wait, and a grace."""
    wait = wait_spec(planned.get("wait_for"))
    return (0.0 if wait is None else parse_wait(wait).timeout_seconds) + GRACE_S


@dataclass(slots=True)
class ObjectApply:
    """Applies one object. `planned` is the planned state, with the ID under which the object is managed."""

    session: "ObjectSession"
    planned: AttributeValues
    prior: AttributeValues | None
    call: CallContext

    async def create(self, timeout_s: float) -> InstanceState:
        """The state of an object that is created, or adopted."""
        failure = await self._apply(timeout_s)
        if failure is None:
            stored = await self._state(is_pending=False)
            await self._require_as_planned(stored, is_pending=True)
            return stored
        live = self.session.live
        if live is not None and annotated_id(live) == self.planned["id"]:
            self.call.save_state(await self._state(is_pending=self.planned.get("on_timeout") != FAIL))
        elif isinstance(failure, RemoteConflict | RemoteRefused) and (made := await self._made_elsewhere()) is not None:
            # Another apply, or another writer, has created it since it was looked for.
            raise DiagnosticsError(managed_elsewhere_error(made, self.planned)) from failure
        raise DiagnosticsError(self._diagnostic(failure)) from failure

    async def _made_elsewhere(self) -> Json:
        """The object of another owner that is in the place of this one; None when there is none."""
        try:
            found = await self.session.observe()
        except SetpointError:
            return None
        return None if annotated_id(found) == self.planned["id"] else found

    async def update(self, timeout_s: float) -> InstanceState:
        """The state of an object that existed before."""
        failure = await self._apply(timeout_s)
        if failure is None:
            stored = await self._state(is_pending=False)
            await self._require_as_planned(stored, is_pending=False)
            return stored
        if isinstance(failure, _WAIT_ERRORS) or (isinstance(failure, Interrupted) and self._is_as_planned()):
            self.call.save_state(await self._state(is_pending=True, is_untainted=True))
        raise DiagnosticsError(self._diagnostic(failure)) from failure

    async def _require_as_planned(self, stored: InstanceState, *, is_pending: bool) -> None:
        """Raises DiagnosticsError for another result. Terraform taints a new object then: a pending one is kept."""
        if paths := list(deviations(self.planned, stored.state, schema_type(OBJECT_SCHEMA))):
            self.call.save_state(await self._state(is_pending=is_pending) if is_pending else stored)
            raise DiagnosticsError(deviation_error(paths))

    async def _apply(self, timeout_s: float) -> SetpointError | Interrupted | None:
        try:
            return await self.call.until_stopped(self.session.reconcile(timeout_s))
        except Interrupted as interrupted:
            return interrupted

    def _is_as_planned(self) -> bool:
        live, fields = self.session.live, self.planned.get("projection")
        return live is not None and fields in (UNKNOWN, projection(self.session, live, self.planned))

    async def _state(self, *, is_pending: bool, is_untainted: bool = False) -> InstanceState:
        live, status = self.session.live, await self.session.stored_state()
        # A value that the plan has is what dependants were planned with: the next read has a later one.
        is_planned = self.planned.get("status") is not None and is_known(self.planned.get("status"))
        output = self.planned["status"] if is_planned else wait_output(status)
        state = {
            **self.planned,
            "object_ref": object_ref(live),
            "projection": projection(self.session, live, self.planned),
            "status": None if is_pending else output,
        }
        state["fields"] = shown_fields(state, self.prior)
        settled = None if is_pending else await self.session.settled(ignored_paths(self.planned))
        private = PrivateState(engine_state(status), is_pending, is_untainted, settled=settled)
        return InstanceState(state, private.to_bytes())

    def _diagnostic(self, failure: SetpointError | Interrupted) -> Diagnostic:
        return write_diagnostic(failure, self.session.connection, self._refused)

    def _refused(self, failure: SetpointError) -> Diagnostic:
        if isinstance(failure, _WAIT_ERRORS):
            found = engine_diagnostic(failure, ("wait_for",))
            return wait_diagnostic(found, self.planned, "The object is kept as it is")
        return engine_diagnostic(failure, (manifest_attribute(self.planned),))
