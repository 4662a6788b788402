"""The apply of one `setpoint_patch`: write, wait, and the state that comes of it."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.wait.wait_for import FieldWait, parse_wait
from setpoint.errors import RemoteConflict, SetpointError
from setpoint.terraform.cty.values import AttributeValues, CtyValue, is_known
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.consistency import deviation_error, deviations
from setpoint.terraform.framework.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    Interrupted,
)
from setpoint.terraform.framework.schema import schema_type
from setpoint.terraform.patches.patch_config import is_restored, patch_attribute
from setpoint.terraform.patches.patch_messages import conflict_errors, lost_target_error, patch_diagnostic
from setpoint.terraform.patches.patch_plan import require_no_conflict, require_patchable
from setpoint.terraform.patches.patch_schema import PATCH_SCHEMA
from setpoint.terraform.patches.patch_state import PatchNotes, fields_text, place_of, private_of
from setpoint.terraform.resources.object_config import wait_spec
from setpoint.terraform.resources.object_diagnostics import wait_diagnostic, write_diagnostic
from setpoint.terraform.resources.object_state import status_value
from setpoint.terraform.resources.shown_values import shown_fields

if TYPE_CHECKING:
    from setpoint.objects.patch import PatchForecast, PatchSession
    from setpoint.objects.patch_record import PatchRecord
    from setpoint.objects.wait import ObjectWait

# How long a write may take.
_WRITE_S: Final = 60.0
# How often it is tried again when another writer comes before.
_ATTEMPTS: Final = 20


@dataclass(slots=True)
class PatchWrite:
    """Writes one patch to the object that its session has observed, and waits. `planned` has its ID."""

    session: "PatchSession"
    planned: AttributeValues
    prior: AttributeValues | None
    call: CallContext
    notes: PatchNotes
    wait: "ObjectWait | None"

    async def run(self, record: "PatchRecord", *, is_new: bool, is_tested: bool) -> InstanceState:
        """The state once the patch is written and its wait is satisfied."""
        id_, place = str(self.planned["id"]), await place_of(self.session)
        attempts = 0
        while True:
            attempts += 1
            forecast = await self._forecast(record, is_tested=is_tested)
            noted = record.of_fields(self.session.live, forecast.paths)
            # Read by the next process if this one is killed, and until a read has shown that the state has the same.
            self.notes.write(place, id_, replace(noted, written={}))
            failure = await self._written(record, forecast) if forecast.is_changed else None
            if not isinstance(failure, RemoteConflict) or attempts == _ATTEMPTS:
                break
            if await self.session.observe() is None:
                raise DiagnosticsError(lost_target_error(self.session.target, is_new=False))
        if failure is not None:
            await self._keep_if_written(noted, place, is_new=is_new)
            raise DiagnosticsError(self._diagnostic(failure)) from failure
        written = noted.with_written(self.session.live)
        if is_new:
            await self._require_patched_once(written, place)
        self.notes.write(place, id_, written)
        stored = await self._waited(written, is_new=is_new)
        if paths := list(deviations(self.planned, stored.state, schema_type(PATCH_SCHEMA))):
            # Terraform takes a new one for failed, then: a pending one is kept.
            self.call.save_state(self._state(written, None, is_pending=True) if is_new else stored)
            raise DiagnosticsError(deviation_error(paths))
        return stored

    async def _require_patched_once(self, record: "PatchRecord", place: str) -> None:
        """Gives the fields back, and raises DiagnosticsError, where another patch of them was written at once."""
        twice = [] if self.planned.get("force_conflicts") is True else self.session.met_patches
        if twice:
            await self.session.release(record, is_restored=True)
            self.notes.forget(place, str(self.planned["id"]))
            raise DiagnosticsError(*conflict_errors(twice, self.planned))

    async def _forecast(self, record: "PatchRecord", *, is_tested: bool) -> "PatchForecast":
        require_patchable(self.session, self.session.live)
        try:
            forecast = await self.session.forecast_patch(
                record, is_restored=is_restored(self.planned), is_tested=is_tested
            )
        except SetpointError as fault:
            raise DiagnosticsError(self._diagnostic(fault)) from fault
        require_no_conflict(forecast, self.planned)
        return forecast

    async def _written(self, record: "PatchRecord", forecast: "PatchForecast") -> SetpointError | Interrupted | None:
        try:
            return await self.call.until_stopped(self.session.write(record, forecast, _WRITE_S))
        except Interrupted as interrupted:
            return interrupted

    async def _keep_if_written(self, record: "PatchRecord", place: str, *, is_new: bool) -> None:
        """After a failure of a new patch: it is in the state if it was written; else there is nothing to go back to."""
        if not is_new:
            return
        await self.session.observe()
        if self.session.is_written():
            self.call.save_state(self._state(record.with_written(self.session.live), None, is_pending=True))
        else:
            self.notes.forget(place, str(self.planned["id"]))

    async def _waited(self, record: "PatchRecord", *, is_new: bool) -> InstanceState:
        if self.wait is None:
            return self._state(record, None)
        wait_for = parse_wait(wait_spec(self.planned.get("wait_for")))
        try:
            met = await self.call.until_stopped(self.wait.until(wait_for))
        except (SetpointError, Interrupted) as failure:
            self.call.save_state(self._state(record, None, is_pending=True, is_untainted=not is_new))
            if isinstance(failure, Interrupted):
                raise
            raise DiagnosticsError(self._wait_diagnostic(failure)) from failure
        planned = self.planned.get("status")
        if planned is not None and is_known(planned):
            # What dependants were planned with: the next read has a later one.
            return self._state(record, planned)
        is_valued = isinstance(wait_for.wait, FieldWait)
        return self._state(record, status_value(met.value) if is_valued else None)

    def _state(
        self, record: "PatchRecord", status: CtyValue, *, is_pending: bool = False, is_untainted: bool = False
    ) -> InstanceState:
        fields = fields_text(self.session.live, list(record.before))
        state = {**self.planned, "projection": fields, "before": record.values(), "status": status}
        state["fields"] = shown_fields(state, self.prior)
        private = msgspec.structs.replace(
            private_of(str(self.planned["id"]), record), is_pending=is_pending, is_untainted=is_untainted
        )
        return InstanceState(state, private.to_bytes())

    def _diagnostic(self, failure: SetpointError | Interrupted) -> Diagnostic:
        at = (patch_attribute(self.planned),)
        return write_diagnostic(failure, self.session.connection, lambda error: patch_diagnostic(error, at))

    def _wait_diagnostic(self, failure: SetpointError) -> Diagnostic:
        found = patch_diagnostic(failure, ("wait_for",))
        return wait_diagnostic(found, self.planned, "The patch stays as it is written")
