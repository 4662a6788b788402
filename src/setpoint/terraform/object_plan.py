"""What applying an object will give, by the word of the cluster it is in."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from setpoint.core.values import Json
from setpoint.errors import ImmutableFieldChanged, OperationRunning, SetpointError
from setpoint.terraform.attribute_path import Path
from setpoint.terraform.cty_types import DYNAMIC
from setpoint.terraform.cty_values import UNKNOWN, Value, Values, same_value
from setpoint.terraform.declared import (
    MANIFEST,
    id_on,
    identity_of,
    is_declared,
    may_be_another,
    next_id,
    source_of,
    tree_in,
)
from setpoint.terraform.diagnostics import Diagnostic, Refused, error, warning
from setpoint.terraform.memory import Memory, read_memory
from setpoint.terraform.object_schema import OBJECT
from setpoint.terraform.object_state import expected_ref, object_ref, place_of, projection, single_of
from setpoint.terraform.pending import Pending
from setpoint.terraform.provider import Planned, PlanRequest
from setpoint.terraform.schema import attribute_type
from setpoint.terraform.sites import Sites
from setpoint.terraform.waits import waits_for_value
from setpoint.terraform.wording import told

if TYPE_CHECKING:
    from setpoint.objects.single import Forecast, Single

# Stands for the id of an object that is still to be made.
_TO_COME = "000000000000/0"


@dataclass(frozen=True, slots=True)
class Acquaintance:
    """What is known of objects besides their states; those that this process has made are not about to be deleted."""

    pending: Pending
    made: Collection[str]


@dataclass(slots=True)
class ObjectPlan:
    """A plan in the making. `told` is what there is to say about it."""

    sites: Sites
    request: PlanRequest
    told: list[Diagnostic]
    known: Acquaintance

    @property
    def config(self) -> Values:
        """What is asked for."""
        return self.request.config

    async def made(self) -> Planned:
        """The plan."""
        prior = self.request.prior
        if not is_declared(self.config) or not self.sites.are_known(self.config.get("cluster")):
            is_another = prior is not None and may_be_another(prior, self.config)
            return self._replaced(prior, None, (MANIFEST,)) if is_another and prior else self._unforeseen(None)
        tree = tree_in(self.config)
        if prior is None:
            return await self._creation(tree)
        reason = self._another_object(prior, tree)
        return self._replaced(prior, tree, reason) if reason else await self._update(prior, tree)

    # --- Making it ----------------------------------------------------------------------------------------------------

    async def _creation(self, tree: dict[str, Json]) -> Planned:
        single = single_of(self.sites, self.config, _TO_COME, Memory())
        place = await place_of(self.sites, self.config, single)
        try:
            live = await single.look()
        except OperationRunning:
            # Its kind is just coming.
            return self._unforeseen(tree)
        if live is None:
            return await self._foreseen(single, tree, Memory())
        if id_on(live) in self.known.made:
            raise Refused(not_ours(live, self.config))
        if (adopted := _adoptable(live, self.known.pending.id_at(place))) and not self.request.private:
            self.known.pending.note(place, adopted)
            if self.known.pending.is_news(place):
                self.told.append(_kept(adopted))
            memory = Memory(adopts=adopted)
            return await self._foreseen(single_of(self.sites, self.config, adopted, memory), tree, memory)
        if not id_on(live) and not self.request.private:
            raise Refused(already_there(tree, self.config))
        # Somebody's, who is about to delete it: what comes after cannot be asked for yet.
        return self._unforeseen(tree)

    # --- Changing it --------------------------------------------------------------------------------------------------

    def _another_object(self, prior: Values, tree: Json) -> Path:
        """The attribute whose change makes it another object; empty when it is the same one."""
        if identity_of(tree_in(prior)) != identity_of(tree):
            return (source_of(self.config),)
        if self.sites.key(prior.get("cluster")) == self.sites.key(self.config.get("cluster")):
            return ()
        old, new = (self.sites.site(one.get("cluster")).client.connection.server for one in (prior, self.config))
        return () if old == new else ("cluster",)

    def _replaced(self, prior: Values, tree: Json, reason: Path) -> Planned:
        require_unprotected(prior)
        planned = self._unforeseen(tree)
        return Planned({**planned.state, "id": UNKNOWN}, (reason,), planned.private)

    async def _update(self, prior: Values, tree: dict[str, Json]) -> Planned:
        memory = read_memory(self.request.private)
        single = single_of(self.sites, self.config, str(prior["id"]), memory)
        return await self._foreseen(single, tree, memory)

    # --- What the cluster says ----------------------------------------------------------------------------------------

    async def _foreseen(self, single: "Single", tree: dict[str, Json], memory: Memory) -> Planned:
        prior = self.request.prior
        try:
            await single.check()
            forecast = await single.foresee()
        except OperationRunning:
            # Its kind, or its namespace, is still to come; or what has its name is still to go.
            return self._unforeseen(tree, memory)
        except ImmutableFieldChanged as fault:
            if prior is None:
                raise
            self.told.append(warning("A new object is needed", told(fault).detail, (source_of(self.config),)))
            return self._replaced(prior, tree, (source_of(self.config),))
        except SetpointError as fault:
            raise Refused(told(fault, (source_of(self.config),))) from fault
        fields = projection(single, forecast.after, self.config)
        is_same = prior is not None and not forecast.plan.writes and fields == prior.get("projection")
        if forecast.plan.writes and prior is not None and fields == prior.get("projection"):
            # What changes is not among what is shown, such as whose fields they are.
            return self._put_together(forecast, memory, UNKNOWN, is_same=False)
        return self._put_together(forecast, memory, fields, is_same=is_same)

    def _put_together(self, forecast: "Forecast", memory: Memory, fields: Value, *, is_same: bool) -> Planned:
        prior, state = self.request.prior, dict(self.request.proposed)
        state |= {"id": UNKNOWN if prior is None else prior["id"], "object_ref": object_ref(forecast.after)}
        state |= {"projection": fields, "status": self._status(memory, is_same=is_same)}
        source = source_of(self.config)
        if is_same and prior is not None and source_of(prior) == source:
            # Another text that says the same is no change.
            state[source] = prior[source]
        return Planned(state, private=memory.to_bytes())

    def _unforeseen(self, tree: Json, memory: Memory | None = None) -> Planned:
        """What is known without asking a cluster."""
        prior, state = self.request.prior, dict(self.request.proposed)
        ref: Value = UNKNOWN if tree is None else expected_ref(tree)
        state |= {"id": UNKNOWN if prior is None else prior["id"], "object_ref": ref, "projection": UNKNOWN}
        state["status"] = self._status(memory or read_memory(self.request.private), is_same=False)
        return Planned(state, private=self.request.private if memory is None else memory.to_bytes())

    def _status(self, memory: Memory, *, is_same: bool) -> Value:
        prior, wait_for = self.request.prior, self.config.get("wait_for")
        if wait_for is None:
            return None
        is_awaited = memory.is_pending or bool(memory.adopts)
        if not waits_for_value(wait_for):
            # Whether it is satisfied is nobody's value; that there is something to do has to be seen all the same.
            return UNKNOWN if is_awaited and prior is not None else None
        if prior is None or not is_same or is_awaited or not _is_same_wait(prior.get("wait_for"), wait_for):
            return UNKNOWN
        return prior.get("status") if prior.get("status") is not None else UNKNOWN


def _adoptable(live: Json, noted: str) -> str:
    """Under which id the object is kept, if it is the one that was noted; empty when it is not."""
    kept = id_on(live)
    # Who was about to take it over may not have come to it.
    is_noted = bool(noted) and (kept in ("", noted) or next_id(kept) == noted)
    return (kept or noted) if is_noted else ""


def _is_same_wait(before: Value, after: Value) -> bool:
    type_ = attribute_type(OBJECT.attributes["wait_for"])
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        # More or less time changes nothing for what is there already.
        before, after = ({**one, "timeout": None} for one in (before, after))
    return same_value(before, after, type_ if before is not None else DYNAMIC)


def _kept(id_: str) -> Diagnostic:
    return warning(
        "The object is kept",
        f"Its last apply failed after it was made (as {id_}). Terraform plans a replacement, but the object is neither "
        'deleted nor made anew: the next apply goes on with it. With on_timeout = "fail" it is replaced.',
    )


def require_unprotected(prior: Values) -> None:
    """Refused for what must not be deleted."""
    if prior.get("delete_protection") is True:
        why = "delete_protection is set: apply delete_protection = false first, then delete or replace it."
        raise Refused(error("The object is protected", why, ("delete_protection",)))


def already_there(tree: Json, config: Values) -> Diagnostic:
    """Why an object that nobody here has made is not just taken over."""
    ref = object_ref(tree)
    return error(
        "The object is there already",
        f"{ref['kind']} {ref['name']} was made by somebody else. To keep it from here on, import it: {_import(ref)}.",
        (source_of(config),),
    )


def not_ours(live: Json, planned: Values) -> Diagnostic:
    """Why an object that somebody else keeps is not just taken over."""
    if not id_on(live):
        return already_there(live, planned)
    ref = object_ref(live)
    return error(
        "The object is kept by another resource",
        f"{ref['kind']} {ref['name']} is kept as {id_on(live)}, by another resource or another state of Terraform's. "
        "Remove it there first, with `terraform state rm` if the object is to stay; then import it here: "
        f"{_import(ref)}.",
        (source_of(planned),),
    )


def _import(ref: Values) -> str:
    """How to import it. A block waits for its value, too; where outputs need that, the command refuses."""
    parts = {"apiVersion": ref["api_version"], "kind": ref["kind"], "namespace": ref["namespace"], "name": ref["name"]}
    identifier = ",".join(f"{name}={one}" for name, one in parts.items() if one)
    return f"terraform import ADDRESS '{identifier}', or with the same id in an import block"
