"""A fuzzed kind: its types, example values, and how another writer creates and changes its object."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import msgspec
from hypothesis import strategies as st

from setpoint.core.schema.shape import Mark, ObjectShape, atomic_ancestor, field_at, paths_of, shape_of
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path
from setpoint.engine.kind import AnyKind, Location, Present, observe_decoded
from setpoint.engine.resource import ResourceRef
from setpoint.localcloud.schema import ObjectSchema
from tests.laws.google.cloud_harness import NAMESPACE, CloudHarness, run
from tests.laws.google.from_schema import Vocabulary, patches, settable
from tests.laws.google.from_types import Words, field_paths

Spec = dict[str, Any]


class FuzzedKind(ABC):
    """A kind under test. Its object has one name everywhere. What follows from its types is worked out once."""

    kind: ClassVar[str]
    group: ClassVar[str]
    name: ClassVar[str]
    spec_type: ClassVar[type[msgspec.Struct]]
    tree_type: ClassVar[type[msgspec.Struct]]
    live_type: ClassVar[type[msgspec.Struct]]
    schema: ClassVar[ObjectSchema]
    # Example values of a spec, and of a live object.
    words: ClassVar[Words]
    live_words: ClassVar[Vocabulary]
    # Where the object is, for the kind and in the API.
    location: ClassVar[Location]
    path: ClassVar[str]
    # Elements and labels that a policy may list, besides every field.
    listable: ClassVar[tuple[str, ...]] = ()
    # Other names that the API has for what the kind models.
    aliases: ClassVar[tuple[str, ...]] = ()
    # Fields that exist only while a switch is on, and the switch.
    switches: ClassVar[Mapping[Path, Path]] = {}
    # Defaults of the service.
    own: ClassVar[Mapping[str, Json]] = {}

    @property
    def ref(self) -> ResourceRef:
        return ResourceRef(self.group, self.kind, NAMESPACE, self.name)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Every field that the spec's type names."""
        return field_paths(self.spec_type)

    @property
    def shape(self) -> ObjectShape:
        return shape_of(self.tree_type)

    @cached_property
    def policy_paths(self) -> list[str]:
        """Every path that an annotation may list."""
        listable = [path for path in paths_of(self.shape) if "…" not in path and path != "made"]
        # A part of a reference is never unmanaged.
        return [path for path in listable if str(atomic_ancestor(self.shape, Path.parse(path))) == path] + list(
            self.listable
        )

    @cached_property
    def protected(self) -> list[Path]:
        """The fields that keep their value when the spec leaves them out."""
        paths = [Path.parse(path) for path in paths_of(self.shape) if "…" not in path]
        return [path for path in paths if Mark.PROTECTED in field_at(self.shape, path).marks]

    @cached_property
    def unmodelled(self) -> list[str]:
        """The fields of the API that a client may write and the kind does not model; not inside lists."""
        modelled = paths_of(shape_of(self.live_type))
        return [path for path, _ in settable(self.schema) if path not in (*modelled, *self.aliases)]

    def kind_in(self, harness: CloudHarness) -> AnyKind:
        return harness.kinds[self.kind]

    def view(self, harness: CloudHarness) -> Mapping[str, Json] | None:
        """The live object in the spec's terms; None when there is none."""
        kind = self.kind_in(harness)
        observation = run(observe_decoded(self.location, kind))
        return kind.view(observation.live) if isinstance(observation, Present) else None

    def raw(self, harness: CloudHarness) -> Spec | None:
        """The live object as the service has it."""
        return harness.found(self.path)

    @abstractmethod
    def surroundings(self, draw: st.DrawFn, harness: CloudHarness) -> str:
        """Creates what has to exist first; the database version."""

    @abstractmethod
    def make(self, draw: st.DrawFn, harness: CloudHarness, database_version: str) -> None:
        """Another writer creates the object."""

    @cached_property
    def patches(self) -> st.SearchStrategy[list[Spec]]:
        """The changes of another writer."""
        return patches(self.schema, self.live_words, 6)

    def edit_live(self, draw: st.DrawFn, harness: CloudHarness) -> None:
        """Another writer changes the object, as far as the service accepts it."""
        for patch in draw(self.patches):
            harness.ask("PATCH", self.path, patch)

    def sensible(self, spec: Spec, view: Mapping[str, Json] | Missing, database_version: str) -> Spec:
        """The spec without values that no service accepts."""
        return spec

    def possible(self, spec: Spec, database_version: str) -> Spec:
        """The spec without values that only the local cloud accepts."""
        return spec

    def follows(self, spec: Spec, path: Path) -> bool:
        """Whether the service itself gives this field another value because of another field of the spec."""
        return False

    def declared(self, manifest: Mapping[str, Any]) -> Mapping[str, Json]:
        """The manifest, under the names by which fields are compared."""
        return {
            "spec": manifest["spec"],
            "metadata": {"labels": {**manifest["metadata"]["labels"], "managed-by-cnrm": "true"}},
        }

    def is_same(self, path: Path, before: Json | Missing, after: Json | Missing) -> bool:
        """Whether a field is as it was: absence is its default, and empty is absence."""
        default = field_at(self.shape, path).default
        one, other = (default if isinstance(side, Missing) else side for side in (before, after))
        return same([_or_nothing(one)], [_or_nothing(other)])

    def is_kept(self, path: str, before: Json | Missing, after: Json | Missing) -> bool:
        """Whether what the kind does not model is as it was: an empty value counts as absent."""
        nothing = (self.own[path],) if path in self.own else (False, 0, "0")
        one, other = (None if side in nothing else _or_nothing(side) for side in (before, after))
        return same([one], [other])


def _or_nothing(value: Json | Missing) -> Json:
    return None if isinstance(value, Missing) or value in ({}, [], "") else value
