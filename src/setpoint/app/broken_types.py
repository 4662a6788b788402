"""Kinds and owners of plug-ins that cannot be loaded: each step of one of their resources fails and says why."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Never

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.merge.children import Child
from setpoint.core.overlay import EffectiveState
from setpoint.core.plan import PlannedWrite, PlanOptions
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject, Missing
from setpoint.engine.kind import (
    CrdDetails,
    Dependency,
    Intent,
    Location,
    Present,
    Reconciliation,
    RemoteOperation,
    ResolvedReferences,
)
from setpoint.engine.owner import GeneratedChildren, ObjectKind, OwnerStatus
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import PluginBroken


class AnySpec(Struct):
    """A spec of which nothing is known."""


class AnyTree(Struct):
    """A tree of which nothing is known."""

    spec: AnySpec | UnsetType = UNSET


_DETAILS = CrdDetails("A kind whose plug-in cannot be loaded.")


@dataclass(slots=True)
class BrokenKind:
    """A kind that cannot be loaded. Manifests are taken and kept; nothing is observed or written."""

    group: str
    name: str
    version: str
    error: PluginBroken
    revision: int = 1
    annotations: Sequence[str] = ()
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    live_type: type[Struct] = AnySpec
    tree_type: type[Struct] = AnyTree
    definition: CrdDetails = _DETAILS

    def check(self, resource: Resource) -> None:
        """Nothing is known of what it may say: its step fails, and other resources go on."""

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """None are known."""
        return ()

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """PluginBroken, as for every other member that a step may ask."""
        raise self.error

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """PluginBroken."""
        raise self.error

    def view(self, live: Struct) -> JsonObject:
        """PluginBroken."""
        raise self.error

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        """PluginBroken."""
        raise self.error

    def abandons(self, resource: Resource) -> bool:
        """PluginBroken: nothing is deleted, and nothing let go of."""
        raise self.error

    def sending(self, intent: Intent) -> PlanOptions:
        """PluginBroken."""
        raise self.error

    async def observe(self, location: Location, known: str | None = None) -> Never:
        """PluginBroken."""
        raise self.error

    async def create(self, intent: Intent, wanted: JsonObject) -> Never:
        """PluginBroken."""
        raise self.error

    async def update(self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Struct]) -> Never:
        """PluginBroken."""
        raise self.error

    async def delete(self, location: Location, before: Present[Struct], resource: Resource) -> Never:
        """PluginBroken."""
        raise self.error

    async def poll(self, operation: RemoteOperation) -> Never:
        """PluginBroken."""
        raise self.error


@dataclass(slots=True)
class BrokenOwner:
    """An owner that cannot be loaded. Its children stay as they are."""

    group: str
    name: str
    version: str
    error: PluginBroken
    revision: int = 1
    annotations: Sequence[str] = ()
    tree_type: type[Struct] = AnyTree
    definition: CrdDetails = _DETAILS
    makes: Sequence[ObjectKind] = ()
    reads: Sequence[ObjectKind] = ()
    finalizer: str = ""
    minimum_outputs: JsonObject = field(default_factory=dict)

    def check(self, resource: Resource) -> None:
        """See BrokenKind."""

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """None are known."""
        return ()

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """PluginBroken."""
        raise self.error

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> GeneratedChildren:
        """PluginBroken."""
        raise self.error

    def completed(self, child: Child) -> JsonObject:
        """PluginBroken."""
        raise self.error

    def status_of(self, resource: Resource, children: Mapping[str, Resource]) -> OwnerStatus:
        """PluginBroken."""
        raise self.error

    def deleted_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """PluginBroken."""
        raise self.error
