"""Resources as they are on record, and changes of them: what a session returns of the store.

Immutable, with a short text, an HTML form for notebooks, and the JSON that commands print.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NoReturn

import orjson

from setpoint.core.conditions import Condition, ConditionType, conditions_from_data, find_condition
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.wait.outputs import Null, OutputState, from_data
from setpoint.engine.ports import ResourceChangeType
from setpoint.engine.references import OUTPUT
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.state import location_in


class SessionValue(ABC):
    """A value without a truth value of its own, whose JSON is indented as commands print it."""

    __slots__ = ()

    @abstractmethod
    def to_data(self) -> Json:
        """As JSON: maps, lists, text and numbers."""

    def to_json(self) -> str:
        """As JSON text: what the command prints with `-o json`."""
        return orjson.dumps(self.to_data(), option=orjson.OPT_INDENT_2).decode()

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is neither true nor false: ask for what you mean, such as `is_done`")


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredResource(SessionValue):
    """A resource as it is on record: what the author declared, and what the engine reports; without secret values."""

    # With labels, annotations, generation and finalizers.
    resource: Resource

    @property
    def ref(self) -> ResourceRef:
        """Which resource."""
        return self.resource.ref

    @property
    def document(self) -> JsonObject:
        """Its manifest, with the status."""
        return self.resource.document

    @property
    def spec(self) -> JsonObject:
        """What the author wrote."""
        return self.resource.spec

    @property
    def status(self) -> JsonObject:
        """What the engine reports; empty before the first step."""
        return self.resource.status

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions in the status."""
        return conditions_from_data(self.status.get("conditions"))

    @property
    def ready(self) -> Condition | None:
        """The Ready condition; None before the first step."""
        return find_condition(self.conditions, ConditionType.READY)

    @property
    def is_ready(self) -> bool:
        """Whether the live object is as declared."""
        return self.ready is not None and self.ready.status == "True"

    @property
    def outputs(self) -> OutputState:
        """The value that dependants get: `Null` (not tracked), `Unknown`, or `Known`."""
        return from_data(self.status[OUTPUT]) if OUTPUT in self.status else Null()

    @property
    def location(self) -> str | None:
        """The live object; None before one is on record."""
        return location_in(self.status)

    def to_data(self) -> Json:
        """The document."""
        return dict(self.document)

    def __repr__(self) -> str:
        ready = self.ready
        return f"<{self.ref}: {'no step yet' if ready is None else ready.reason}>"

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import resources_html

        return resources_html((self,))


@dataclass(frozen=True, slots=True, eq=False)
class ResourceListing(SessionValue):
    """Resources at one revision, sorted; a watch from it misses nothing."""

    resources: tuple[DeclaredResource, ...]
    revision: Revision

    def __iter__(self) -> Iterator[DeclaredResource]:
        return iter(self.resources)

    def __len__(self) -> int:
        return len(self.resources)

    def __getitem__(self, index: int) -> DeclaredResource:
        return self.resources[index]

    def to_data(self) -> Json:
        """A `List`, as kubectl prints it."""
        return {"apiVersion": "v1", "kind": "List", "items": [one.to_data() for one in self.resources]}

    def __repr__(self) -> str:
        return f"<{len(self)} resource{'s' * (len(self) != 1)} at revision {self.revision}>"

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import resources_html

        return resources_html(self.resources)


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredChange(SessionValue):
    """A change of a resource: what happened, the resource after it (before it, when deleted), and where to resume."""

    change: ResourceChangeType
    resource: DeclaredResource
    revision: Revision

    @property
    def ref(self) -> ResourceRef:
        """Which resource."""
        return self.resource.ref

    def to_data(self) -> Json:
        """The change, the revision and the document of the resource."""
        return {"change": self.change.value, "revision": self.revision, "resource": self.resource.to_data()}

    def __repr__(self) -> str:
        return f"<{self.change.value} {self.resource!r}>"
