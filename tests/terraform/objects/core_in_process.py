"""Plans and applies one `setpoint_object` as the core of Terraform does, with the provider in this process.

Each answer is checked by the rules of Terraform. A plan and its apply have each a provider of their own, as they have
processes of their own.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from setpoint.terraform.connections.clusters import ClusterConnections
from setpoint.terraform.cty.codec import encode_msgpack
from setpoint.terraform.cty.values import AttributeValues, CtyValue, is_known, same_value
from setpoint.terraform.framework.call import ActiveCalls
from setpoint.terraform.framework.provider import ManagedResource, Registration
from setpoint.terraform.framework.schema import schema_type
from setpoint.terraform.resources.object_resource import ObjectResource
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA
from setpoint.terraform.rpc.context import read_value
from setpoint.terraform.rpc.protobuf import provider_messages
from setpoint.terraform.rpc.service import ProviderService
from setpoint.terraform.setpoint_provider import SetpointProvider
from tests.terraform.plan_rules import plan_problems, result_problems

TYPE: Final = schema_type(OBJECT_SCHEMA)
NOTHING: Final[AttributeValues] = dict.fromkeys(OBJECT_SCHEMA.attributes)
_MESSAGES: Final = provider_messages()
_NAME: Final = "setpoint_object"


class Refused(Exception):
    """An RPC that failed: the summary and the detail of its first error."""

    def __init__(self, summary: str, detail: str) -> None:
        super().__init__(f"{summary}: {detail}")
        self.summary = summary


@dataclass(slots=True)
class Stored:
    """What Terraform stores of the resource."""

    values: AttributeValues
    private: bytes
    is_tainted: bool = False


@dataclass(slots=True)
class Planned:
    """A planned change: its action is create, update, no-op or replace."""

    action: str
    values: AttributeValues
    private: bytes


@dataclass(slots=True)
class ProviderCalls:
    """The RPCs of one provider process. The connection is shared, which is faster."""

    clusters: ClusterConnections
    service: ProviderService = field(init=False)

    def __post_init__(self) -> None:
        provider = SetpointProvider()
        provider.resources = {_NAME: Registration[ManagedResource].of(ObjectResource(self.clusters))}
        self.service = ProviderService(provider, _MESSAGES, ActiveCalls(grace_s=0))

    async def call(self, method: str, **fields: Any) -> Any:
        """The response; an AssertionError for a mistake of the provider."""
        sent = {name: value if isinstance(value, bytes) else _encoded(value) for name, value in fields.items()}
        return await self.service.handle(method, _MESSAGES[f"{method}.Request"](type_name=_NAME, **sent))

    async def succeed(self, method: str, **fields: Any) -> Any:
        """The response; Refused when it has an error."""
        answer = await self.call(method, **fields)
        if (failure := _failure(answer)) is not None:
            raise failure
        return answer


def _encoded(value: AttributeValues | None) -> dict[str, bytes]:
    return {"msgpack": encode_msgpack(value, TYPE)}


def _decoded(message: Any) -> AttributeValues | None:
    value = read_value(message, TYPE)
    assert value is None or isinstance(value, dict)
    return value


def _failure(answer: Any) -> Refused | None:
    errors = [one for one in answer.diagnostics if one.severity == 1]
    assert [one.detail for one in errors if "mistake of the provider" in one.summary] == []
    return Refused(errors[0].summary, errors[0].detail) if errors else None


class Resource:
    """One resource of a configuration, and its state."""

    def __init__(self, clusters: ClusterConnections) -> None:
        self.clusters = clusters
        self.stored: Stored | None = None
        self.plans = 0

    # --- The plan -----------------------------------------------------------------------------------------------------

    async def refresh(self, process: ProviderCalls) -> None:
        """Reads the object."""
        if self.stored is not None:
            before = self.stored
            answer = await process.succeed("ReadResource", current_state=before.values, private=before.private)
            found = _decoded(answer.new_state)
            assert found is None or is_known(found)
            self.stored = None if found is None else Stored(found, answer.private, before.is_tainted)

    async def plan(self, config: AttributeValues, *, is_refreshed: bool = True) -> Planned:
        """Plans a change, as `terraform plan -out` does."""
        process = ProviderCalls(self.clusters)
        if is_refreshed:
            await self.refresh(process)
        prior = None if self.stored is None or self.stored.is_tainted else self.stored
        planned = await self._plan(process, config, prior)
        if self.stored is not None and self.stored.is_tainted:
            return Planned("replace", planned.values, planned.private)
        return planned

    async def _plan(self, process: ProviderCalls, config: AttributeValues, prior: Stored | None) -> Planned:
        self.plans += 1
        await process.succeed("ValidateResourceConfig", config=config)
        before = None if prior is None else prior.values
        private = b"" if prior is None else prior.private
        answer, values = await self._planned(process, config, before, private)
        if before is None:
            return Planned("create", values, answer.planned_private)
        if same_value(values, before, TYPE):
            return Planned("no-op", values, answer.planned_private)
        paths = [one.steps[0].attribute_name for one in answer.requires_replace]
        if all(_is_same(values, before, name) for name in paths):
            return Planned("update", values, answer.planned_private)
        answer, values = await self._planned(process, config, None, answer.planned_private)
        return Planned("replace", values, answer.planned_private)

    async def _planned(
        self, process: ProviderCalls, config: AttributeValues, prior: AttributeValues | None, private: bytes
    ) -> tuple[Any, AttributeValues]:
        answer = await process.succeed(
            "PlanResourceChange",
            prior_state=prior,
            proposed_new_state=_proposed(prior, config),
            config=config,
            prior_private=private,
        )
        values = _decoded(answer.planned_state)
        assert values is not None
        assert plan_problems(OBJECT_SCHEMA, prior, config, values) == []
        return answer, values

    # --- The apply ----------------------------------------------------------------------------------------------------

    async def apply(self, plan: Planned, config: AttributeValues) -> None:
        """Applies a plan, by a second plan with the values that are known by now; Refused when it fails."""
        if plan.action == "no-op":
            return
        process = ProviderCalls(self.clusters)
        if plan.action == "replace":
            await self._delete(process, plan.private)
        final = await self._plan(process, config, self.stored)
        wanted = {"create": ("create",), "replace": ("create",), "update": ("update", "no-op")}[plan.action]
        assert final.action in wanted, f"the planned action changed from {plan.action} to {final.action}"
        assert result_problems(TYPE, plan.values, final.values) == []
        if final.action != "no-op":
            await self._apply(process, final, config)

    async def _apply(self, process: ProviderCalls, plan: Planned, config: AttributeValues) -> None:
        before = None if self.stored is None else self.stored.values
        answer = await process.call(
            "ApplyResourceChange",
            prior_state=before,
            planned_state=plan.values,
            config=config,
            planned_private=plan.private,
        )
        failure, values = _failure(answer), _decoded(answer.new_state)
        assert values is None or is_known(values)
        if values is not None:
            is_tainted = failure is not None and plan.action == "create"
            self.stored = Stored(values, answer.private, is_tainted)
        if failure is not None:
            raise failure
        assert values is not None
        assert result_problems(TYPE, plan.values, values) == []

    async def destroy(self) -> None:
        """Deletes the object."""
        process = ProviderCalls(self.clusters)
        await self.refresh(process)
        if self.stored is not None:
            prior, private = self.stored.values, self.stored.private
            sent = {"prior_state": prior, "proposed_new_state": None, "config": None, "prior_private": private}
            answer = await process.succeed("PlanResourceChange", **sent)
            await self._delete(ProviderCalls(self.clusters), answer.planned_private)

    async def _delete(self, process: ProviderCalls, private: bytes) -> None:
        assert self.stored is not None
        sent = {"prior_state": self.stored.values, "planned_state": None, "config": None, "planned_private": private}
        answer = await process.call("ApplyResourceChange", **sent)
        if (failure := _failure(answer)) is not None:
            raise failure
        assert _decoded(answer.new_state) is None
        self.stored = None


def _is_same(one: AttributeValues, other: AttributeValues, name: str) -> bool:
    return same_value(one[name], other[name], TYPE.attributes[name])


def _proposed(prior: AttributeValues | None, config: AttributeValues) -> AttributeValues:
    """The configuration; a computed attribute as it was before."""
    proposed: dict[str, CtyValue] = dict(config)
    for name, one in OBJECT_SCHEMA.attributes.items():
        if one.presence.is_computed and config.get(name) is None:
            proposed[name] = None if prior is None else prior[name]
    return proposed
