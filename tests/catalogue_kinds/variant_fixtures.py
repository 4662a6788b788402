"""Objects that are not simply named in a collection: ids that the service makes, and elements of lists."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

from setpoint.catalogue.rows import KindFacts
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, set_at
from setpoint.engine.kind import Location, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.requests import api_of, creation_members
from setpoint.localcloud.cloud import CloudRequest
from setpoint.localcloud.faults import RewriteField
from setpoint.testing import CallFault, Part
from setpoint.testing.faults import EVERY_VERB, FOR_EVER
from tests.catalogue_kinds.in_process import RecordingCloud, VerbCloud
from tests.catalogue_kinds.row_fixture import RowFixture, escaped

_MADE: Final = "its service makes the ids"
_VARIABLE: Final = re.compile(r"\\\{[^}]*\\\}")


class MadeIdRowFixture(RowFixture):
    """An object whose id the service makes: the only one of its collection. `location` has a name in its place."""

    without: ClassVar[Mapping[Part, str]] = {
        Part.ADOPTION: f"{_MADE}: no object is found by its name",
        Part.MOVE: _MADE,
        Part.OUTPUTS: "its outputs are the name that the service makes",
    }

    @property
    def path(self) -> str:  # type: ignore[override] # known once it is there
        """The path of the object; before it is there, of one that never is."""
        return f"/{api_of(self.row, self.location).host}/{self.row.prefix}{self._key.partition('/')[2]}"

    @property
    def _key(self) -> str:
        collection, found = self._named_key.rpartition("/")[0], self.objects()
        return f"{collection}/{found[0] if found else 'none'}"

    def lacks(self, part: Part) -> str | None:
        listed = self.row.methods["list"]
        if part is Part.LIST and "parent" in listed.query:
            return "a list is one of a parent, which the location does not have"
        return super().lacks(part)

    def delete_outside(self) -> None:
        """What the service keeps for a time says that it was deleted."""
        marks = {name: values[0] for name, values in self.row.absent.items()}
        if marks:
            self.cloud.google.state.objects[self._key].body |= marks
        else:
            super().delete_outside()

    def create_outside(self, value: Json) -> None:
        raise AssertionError("an object with an id that the service makes is not adopted")

    def _pattern(self, verb: str) -> str:
        method = self.row.methods.get(verb)
        if verb == "create" and method is not None:
            return f"/{_VARIABLE.sub('[^/:]+', re.escape(method.path))}$"
        return super()._pattern(verb)

    def _update_pattern(self) -> str:
        return f"{escaped(self._collection)}/[^/]+"


class PartRowFixture(RowFixture):
    """An element of a list in its parent, which has one of another writer, too: every write sends the list of both."""

    without: ClassVar[Mapping[Part, str]] = {
        Part.LIST: "no list has whole objects",
        Part.NEW_FIELDS: "it is part of another object, to which the service adds",
    }

    async def set_up(self) -> None:
        await super().set_up()
        self._put([])

    def new_cloud(self) -> RecordingCloud:
        return VerbCloud(self._verb_of)

    # --- The list -----------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:  # type: ignore[override] # that of the parent
        """The path of the parent."""
        return f"/{api_of(self.row, self.location).host}/{self.row.prefix}{self._parent_key.partition('/')[2]}"

    @property
    def _parent_key(self) -> str:
        return self._named_key.rsplit("/", 2)[0]

    @property
    def _list(self) -> str:
        assert self.row.inside is not None
        return self.row.inside.list

    @property
    def _id_member(self) -> str:
        assert self.row.inside is not None
        return self.row.inside.key

    @property
    def _theirs(self) -> dict[str, Any]:
        return {self._id_member: "other"}

    def _is_own(self, element: Mapping[str, Any]) -> bool:
        return bool(element[self._id_member] == self.ref.name)

    @property
    def _elements(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cloud.google.state.objects[self._parent_key].body.get(self._list, [])
        assert "other" in [one[self._id_member] for one in found], "the element of another writer is gone"
        return [one for one in found if one[self._id_member] != "other"]

    def _put(self, elements: list[dict[str, Any]]) -> None:
        self.cloud.edit(self.path, {self._list: [self._theirs, *elements]})

    # --- The element --------------------------------------------------------------------------------------------------

    def live(self) -> dict[str, Any] | None:
        return next((one for one in self._elements if self._is_own(one)), None)

    def objects(self) -> list[str]:
        return [one[self._id_member] for one in self._elements]

    def delete_outside(self) -> None:
        self._put([one for one in self._elements if not self._is_own(one)])

    def create_outside(self, value: Json) -> None:
        self._put([*self._elements, self._made(value)])

    def _made(self, value: Json) -> dict[str, Any]:
        resource = Resource(self.manifest(self.spec(value)))
        assert isinstance(self.kind, GoogleKind)
        members = creation_members(
            self.row, self.kind.declare(resource, ResolvedReferences()), Location(self.location)
        )
        return {**members, self._id_member: self.ref.name}

    def drift(self, member: str, value: Json) -> None:
        self._put([_with(one, member, value) if self._is_own(one) else one for one in self._elements])

    def rewrite(self, member: str, value: Json) -> None:
        rewritten = [self._theirs, _with(self._made(self.field.first), member, value)]
        self.cloud.inject(RewriteField(self.api_kind, self._list, rewritten))

    # --- Calls --------------------------------------------------------------------------------------------------------

    def _verb_of(self, request: CloudRequest) -> str:
        """What a request does to the element: by whether it is there, and whether it is sent."""
        if request.method == "GET":
            return "get"
        is_there = self.live() is not None
        is_sent = any(map(self._is_own, msgspec.json.decode(request.body)[self._list]))
        return "update" if is_there and is_sent else "create" if is_sent else "delete"

    @property
    def calls(self) -> list[str]:
        assert isinstance(self.cloud, VerbCloud)
        return self.cloud.verbs

    def fail_next_calls(self, fault: CallFault, verbs: Sequence[str] = EVERY_VERB, times: int = FOR_EVER) -> None:
        assert isinstance(self.cloud, VerbCloud)
        self.cloud.fail(fault, verbs, times)

    def recover(self) -> None:
        assert isinstance(self.cloud, VerbCloud)
        self.cloud.verb_faults.clear()
        super().recover()


def _with(element: dict[str, Any], member: str, value: Json) -> dict[str, Any]:
    changed = set_at(element, Path.parse(member), value)
    assert isinstance(changed, dict)
    return changed


def fixture_class(row: KindFacts) -> type[RowFixture]:
    """The class of the fixture of a row."""
    if row.inside is not None:
        return PartRowFixture
    return MadeIdRowFixture if row.id.where == "service" else RowFixture
