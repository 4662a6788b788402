"""What the fixture of a kind says about it: values of its fields, and the parts that a kind may lack."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.resource import Resource

# What a manifest says under `spec`.
Spec: TypeAlias = dict[str, Any]


class Part(StrEnum):
    """What a kind may lack. Its fixture then says why, and the claims about it are reported as left out."""

    # Found out from the kind itself: whether it is made with a KindContext, whether it keeps a cookie, and which
    # capabilities it has.
    ADOPTION = "adoption"
    BULK_OBSERVE = "bulk observe"
    CONTEXT = "context"
    COOKIE = "cookie"
    LIST = "list"
    STATELESS = "stateless"
    FORMER = "former"
    IMMUTABLE = "immutable"
    LABELS = "labels"
    MOVE = "move"
    MOVING_OUTPUT = "moving output"
    NEW_FIELDS = "new fields"
    OPERATIONS = "operations"
    OUTPUTS = "outputs"
    OWN_ABANDON = "own abandon"
    PROTECTION = "protection"
    PRUNING = "pruning"
    REFERENCES = "references"
    SECRET = "secret"
    SLOW_CREATE = "slow create"
    UNSPECIFIED = "unspecified"


# The member of a fixture that each part takes; the others are found out from the kind.
PART_MEMBERS: Final[Mapping[Part, str]] = {
    Part.IMMUTABLE: "immutable",
    Part.LABELS: "labels_member",
    Part.MOVE: "moved",
    Part.MOVING_OUTPUT: "move_output",
    Part.NEW_FIELDS: "add_field",
    Part.OPERATIONS: "make_slow",
    Part.OUTPUTS: "outputs",
    Part.OWN_ABANDON: "abandoning",
    Part.PROTECTION: "protections",
    Part.PRUNING: "unlisted",
    Part.REFERENCES: "referring",
    Part.SECRET: "with_secret",
    Part.SLOW_CREATE: "make_slow",
    Part.UNSPECIFIED: "unspecified",
}
# A kind without the first lacks the second as well.
IMPLIED_PARTS: Final = ((Part.OPERATIONS, Part.SLOW_CREATE), (Part.UNSPECIFIED, Part.PRUNING))


@dataclass(frozen=True, slots=True)
class SpecifiedField:
    """A field that the author specifies, and three values of it.

    `member` is where `read` and `drift` find it in the object; without it, the path without `spec.`.
    """

    path: str
    first: Json
    then: Json
    # What another writer, or the service itself, makes of it.
    drifted: Json
    member: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "member", self.member or self.path.removeprefix("spec."))

    def declared_in(self, resource: Resource) -> Json | Missing:
        """The value that the author declares."""
        return get_at(resource.document, Path.parse(self.path))


@dataclass(frozen=True, slots=True)
class UnspecifiedField:
    """A field that a spec leaves out: what another writer makes of it, and what it is when that is undone.

    Without `spec`, it is the minimal one. A kind that prunes nothing leaves `pruned` out.
    """

    path: str
    theirs: Json
    pruned: Json | Missing = MISSING
    member: str = ""
    spec: Spec | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "member", self.member or self.path.removeprefix("spec."))


@dataclass(frozen=True, slots=True)
class ImmutableChange:
    """A change that no write can make, and a part of the error's message."""

    before: Spec
    after: Spec
    message: str


@dataclass(frozen=True, slots=True)
class MovedObject:
    """A spec that names another object than the minimal one does, and that name, as `objects` has it."""

    spec: Spec
    name: str


@dataclass(frozen=True, slots=True)
class ProtectedField:
    """A spec that turns a protection on, one that is silent about it, and one that gives it up."""

    on: Spec
    silent: Spec
    off: Spec
    member: str
    kept: Json
    given_up: Json | Missing


@dataclass(frozen=True, slots=True)
class ReferringSpec:
    """A spec that names another resource, that resource's manifest, and what its status says when it is ready.

    `description` is how a condition names it: "reference Shelf default/s".
    """

    spec: Spec
    target: Mapping[str, Any]
    description: str
    outputs: Mapping[str, Any] = field(default_factory=dict)
