"""Objects that are not simply named in a collection: ids that the service makes, and elements of lists."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Final

import msgspec

from setpoint.catalogue.rows import KindFacts
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, set_at
from setpoint.engine.kind import Location, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.generic.creating.creations import creation_members
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.requests import api_of
from setpoint.localcloud.cloud import CloudRequest
from setpoint.localcloud.faults import RewriteField
from setpoint.localcloud.google.operations import CatalogueObject
from setpoint.localcloud.routing import ServiceResponse, project_number
from setpoint.testing import CallFault, Part, SpecifiedField
from setpoint.testing.faults import EVERY_VERB, FOR_EVER
from tests.catalogue_kinds.in_process import RecordingCloud, VerbCloud
from tests.catalogue_kinds.row_fixture import RowFixture, escaped
from tests.catalogue_kinds.varied_fields import CannotUpdate
from tests.kinds.lifecycle_google import PROJECT

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

    def create_another(self) -> list[str]:
        """Another writer makes an object as it is declared; its id, or none where the service refuses a second one."""
        before = self.objects()
        answer = self.send_creation(self.field.first)
        assert answer.status in (HTTPStatus.OK, HTTPStatus.CONFLICT), answer
        return [one for one in self.objects() if one not in before]

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
        members = creation_members(self.row, self.kind.declare(resource, ResolvedReferences()), Location(self.location))
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


class SwitchedFixture(RowFixture):
    """A service of a project: it is there, and switched on or off by methods that may be repeated."""

    def new_cloud(self) -> RecordingCloud:
        return VerbCloud(self._verb_of)

    def _verb_of(self, request: CloudRequest) -> str:
        if request.method == "GET":
            return "get"
        return "create" if request.path.endswith(":enable") else "delete"

    @property
    def calls(self) -> list[str]:
        assert isinstance(self.cloud, VerbCloud)
        return self.cloud.verbs

    def create_outside(self, value: Json) -> None:
        super().create_outside(value)
        assert isinstance(self.cloud, VerbCloud)
        self.cloud.verbs.clear()

    def delete_outside(self) -> None:
        self.cloud.google.state.objects[self._key].body["state"] = "DISABLED"


class IdentityFixture(SwitchedFixture):
    """The identity of a service: a call that is repeated makes no second one."""

    without: ClassVar[Mapping[Part, str]] = {
        Part.ADOPTION: "an identity is made by a call that may be repeated, and is never asked for",
        Part.LIST: "there is no list of identities",
        Part.NEW_FIELDS: "nothing of it is read",
        Part.OUTPUTS: "its location has the e-mail address that the service makes",
    }

    def _verb_of(self, request: CloudRequest) -> str:
        return "get" if request.method == "GET" or self.objects() else "create"

    def objects(self) -> list[str]:
        found = self.cloud.google.state.objects.items()
        return [key.rpartition("/")[2] for key, one in found if "identity" in one.hidden]

    def live(self) -> dict[str, Any] | None:
        return {} if self.objects() else None

    def delete_outside(self) -> None:
        raise CannotUpdate("no method deletes an identity: another writer cannot do so either")


class RecordSetFixture(RowFixture):
    """A record set, which its zone holds."""

    location = f"projects/{PROJECT}/managedZones/some-managedzone/rrsets/www.example.com./A"
    without: ClassVar[Mapping[Part, str]] = {Part.IMMUTABLE: "what is fixed of it is its name"}

    @property
    def _records(self) -> dict[str, dict[str, Any]]:
        zone = self.cloud.google.state.objects[self._named_key.rsplit("/", 3)[0]]
        records: dict[str, dict[str, Any]] = zone.hidden.setdefault("records", {})
        return records

    @property
    def _record(self) -> str:
        return "{} {}".format(*self._named_key.split("/")[-2:])

    @property
    def _collection(self) -> str:
        return self.path.rsplit("/", 2)[0]

    def live(self) -> dict[str, Any] | None:
        return self._records.get(self._record)

    def objects(self) -> list[str]:
        return [one for one in self._records if not one.endswith((" NS", " SOA"))]

    def delete_outside(self) -> None:
        del self._records[self._record]

    def drift(self, member: str, value: Json) -> None:
        self._records[self._record] |= {member: value}


class ConnectionFixture(RowFixture):
    """A connection of a network to a service: found by its network, and ended by a method of the network."""

    network: ClassVar[str] = f"projects/{PROJECT}/global/networks/some-target"
    location = f"services/servicenetworking.googleapis.com/connections/{network}"
    without: ClassVar[Mapping[Part, str]] = {
        Part.LIST: "a list is one of a single network",
        Part.MOVE: "it has no name that could be another",
    }
    field: ClassVar[SpecifiedField] = SpecifiedField(
        "spec.reservedPeeringRanges",
        [{"external": "first"}],
        [{"external": "second"}],
        [{"external": "third"}],
        "reservedPeeringRanges",
    )

    @classmethod
    def is_deletable(cls) -> bool:
        return True

    def _make_containers(self) -> None:
        self.cloud.google.state.objects[f"compute/{self.network}"] = CatalogueObject({"name": "some-target"})

    @property
    def _keys(self) -> list[str]:
        return [one for one in self.cloud.google.state.objects if one.startswith("servicenetworking/")]

    @property
    def _key(self) -> str:
        return next(iter(self._keys), "none")

    @property
    def path(self) -> str:  # type: ignore[override] # known once it is there
        """The path of the connection."""
        return f"/{self.row.host}/{self.row.prefix}{self._key.partition('/')[2]}"

    def objects(self) -> list[str]:
        return self._keys

    def read(self, member: str) -> Json | Missing:
        found = super().read(member)
        return [{"external": one} for one in found] if isinstance(found, list) else found

    def drift(self, member: str, value: Json) -> None:
        super().drift(member, _names_of(value))

    def rewrite(self, member: str, value: Json) -> None:
        super().rewrite(member, _names_of(value))

    def create_outside(self, value: Json) -> None:
        name = self.network.replace(PROJECT, project_number(PROJECT))
        body = {"network": name, "reservedPeeringRanges": _names_of(value)}
        answer = self.cloud.call("POST", f"/{self.row.host}/v1/services/{self.minimal['service']}/connections", body)
        assert answer.status == 200, answer
        self.finish()
        self.cloud.journal.clear()
        self.cloud.verbs.clear()  # type: ignore[attr-defined] # see new_cloud

    def new_cloud(self) -> RecordingCloud:
        return VerbCloud(self._verb_of)

    def _verb_of(self, request: CloudRequest) -> str:
        if request.method == "GET":
            return "get"
        if request.path.endswith("/removePeering"):
            return "delete"
        return "update" if self._keys else "create"

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


def _names_of(value: Json) -> list[Json]:
    return [one["external"] for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


class DatabaseFixture(RowFixture):
    """A database of Spanner, which is created and changed by statements."""

    def send_creation(self, value: Json) -> ServiceResponse:
        statements = [f'ALTER DATABASE `{self.ref.name}` SET OPTIONS (version_retention_period="{value}")']
        body = {"createStatement": f"CREATE DATABASE `{self.ref.name}`", "extraStatements": statements}
        return self.cloud.call("POST", self._collection, body)


_BY_NAME: Final[Mapping[str, type[RowFixture]]] = {
    "DNSRecordSet": RecordSetFixture,
    "SpannerDatabase": DatabaseFixture,
    "Service": SwitchedFixture,
    "ServiceIdentity": IdentityFixture,
    "ServiceNetworkingConnection": ConnectionFixture,
}


def fixture_class(row: KindFacts) -> type[RowFixture]:
    """The class of the fixture of a row."""
    if row.kind in _BY_NAME:
        return _BY_NAME[row.kind]
    if row.inside is not None:
        return PartRowFixture
    return MadeIdRowFixture if row.id.where == "service" else RowFixture
