"""Lifecycle fixtures of kinds whose ids the service makes, and of parts of other objects."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from setpoint.core.values.json_types import Json
from setpoint.engine.resource import ResourceRef
from setpoint.localcloud.faults import RewriteField
from setpoint.testing import MovedObject, Part, Spec, SpecifiedField, UnspecifiedField
from tests.kinds.lifecycle_catalogue import NAME, CatalogueFixture
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, TOLD

_AT_ONCE: Final = "the service answers when it is done: there are no operations"
_NO_REFERENCES: Final = "its references have fixtures of other kinds"
_WITHOUT: Final[Mapping[Part, str]] = {
    **TOLD,
    Part.OWN_ABANDON: "the spec does not speak of deletion",
    Part.STATELESS: "it keeps a cookie",
    Part.PROTECTION: "no field of it is protected",
    Part.PRUNING: "the service fills in what the spec never had",
    Part.MOVING_OUTPUT: "it has no output that moves by itself",
    Part.REFERENCES: _NO_REFERENCES,
    Part.SECRET: "nothing in it is secret",
    Part.IMMUTABLE: "every field of it can change",
}


class MadeIdFixture(CatalogueFixture):
    """An object whose id the service makes: it is the only one of its collection."""

    # The path of the collection.
    collection: ClassVar[str]

    @property
    def location(self) -> str:  # type: ignore[override] # known once it is there
        found = self.objects()
        return f"{self.collection}/{found[0] if found else 'none'}"

    @property
    def path(self) -> str:  # type: ignore[override] # see location
        return f"/{self.host}/{self.prefix}/{self.location}"

    def objects(self) -> list[str]:
        below = f"{self.host.partition('.')[0]}/{self.collection}/"
        return [one.removeprefix(below) for one in self.cloud.google.state.objects if one.startswith(below)]

    def create_outside(self, value: Json) -> None:
        raise AssertionError("an object with an id that the service makes is not adopted")


class NotificationChannelFixture(MadeIdFixture):
    """A channel of Monitoring, found by the label with the uid of its resource."""

    group = "monitoring.cnrm.cloud.google.com"
    kind_name = "MonitoringNotificationChannel"
    host = "monitoring.googleapis.com"
    prefix = "v3"
    collection = f"projects/{PROJECT}/notificationChannels"
    api_kind = "MonitoringNotificationChannel"
    without: ClassVar[Mapping[Part, str]] = {
        **_WITHOUT,
        Part.ADOPTION: "its service makes the ids: no object is found by its name",
        Part.MOVE: "its service makes the ids",
        Part.OPERATIONS: _AT_ONCE,
        Part.SLOW_CREATE: _AT_ONCE,
        Part.OUTPUTS: "its outputs are the name that the service makes",
    }
    ref = ResourceRef(group, kind_name, NAMESPACE, NAME)
    bare: ClassVar[Spec] = {"type": "email", "labels": {"email_address": "ops@example.com"}}
    minimal = bare
    field = SpecifiedField("spec.description", "one", "two", "three")
    labels_member = "userLabels"
    unspecified = UnspecifiedField("spec.enabled", True)


class FolderFixture(MadeIdFixture):
    """A folder, found by its name for people in the organization; kept for a time when it is deleted."""

    group = "resourcemanager.cnrm.cloud.google.com"
    kind_name = "Folder"
    host = "cloudresourcemanager.googleapis.com"
    prefix = "v3"
    collection = "folders"
    api_kind = "Folder"
    without: ClassVar[Mapping[Part, str]] = {
        **_WITHOUT,
        Part.ADOPTION: "its service makes the ids: no object is found by its name",
        Part.LABELS: "a folder has no labels",
        Part.MOVE: "its service makes the ids",
        Part.OUTPUTS: "its outputs are the name that the service makes",
        Part.UNSPECIFIED: "a folder has no field that may be left out",
    }
    ref = ResourceRef(group, kind_name, NAMESPACE, NAME)
    bare: ClassVar[Spec] = {"displayName": "first", "organizationRef": {"external": "organizations/123"}}
    minimal = bare
    field = SpecifiedField("spec.displayName", "first", "second", "third")

    def lacks(self, part: Part) -> str | None:
        return "the list of folders is one of a parent" if part is Part.LIST else super().lacks(part)

    def objects(self) -> list[str]:
        found = self.cloud.google.state.objects
        return [one for one in super().objects() if _is_there(found[f"cloudresourcemanager/folders/{one}"].body)]


def _is_there(body: Mapping[str, Any]) -> bool:
    return body.get("state") != "DELETE_REQUESTED"


class RouterNatFixture(CatalogueFixture):
    """A NAT of a router that has another one, of another writer: every write sends the list of both."""

    group = "compute.cnrm.cloud.google.com"
    kind_name = "ComputeRouterNAT"
    host = "compute.googleapis.com"
    prefix = "compute/v1"
    router = f"projects/{PROJECT}/regions/europe-west1/routers/some-router"
    location = f"{router}/nats/{NAME}"
    path = f"/{host}/{prefix}/{router}"
    api_kind = "ComputeRouter"
    methods: ClassVar[Mapping[str, str]] = {"get": "GET", "create": "PATCH", "update": "PATCH", "delete": "PATCH"}
    without: ClassVar[Mapping[Part, str]] = {
        **_WITHOUT,
        Part.LABELS: "a NAT has no labels",
        Part.NEW_FIELDS: "it is part of another object, to which the service adds",
        Part.OPERATIONS: "its operations are those of the router: the fixture of a folder has some",
        Part.SLOW_CREATE: "its operations are those of the router: the fixture of a folder has some",
    }
    ref = ResourceRef(group, kind_name, NAMESPACE, NAME)
    bare: ClassVar[Spec] = {
        "region": "europe-west1",
        "routerRef": {"external": router},
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    }
    minimal = bare
    field = SpecifiedField("spec.minPortsPerVm", 64, 128, 256)
    moved = MovedObject({**bare, "resourceID": "another-nat"}, "another-nat")
    unspecified = UnspecifiedField("spec.icmpIdleTimeoutSec", 60)
    outputs: ClassVar[Mapping[str, Json]] = {"externalRef": location}

    async def set_up(self) -> None:
        await super().set_up()
        self.cloud.google.operation_seconds = 0
        # What other writers made of the list: how many calls were before, and how many NATs there are since.
        self._edits: list[tuple[int, int]] = []
        body = {"name": "some-router", "network": f"projects/{PROJECT}/global/networks/n", "nats": [self._nat("other")]}
        assert self.cloud.call("POST", self.path.rpartition("/")[0], body).status == 200
        self.cloud.journal.clear()

    def lacks(self, part: Part) -> str | None:
        return "no list has whole objects" if part is Part.LIST else super().lacks(part)

    def _nat(self, name: str, **members: Json) -> dict[str, Any]:
        own = {"natIpAllocateOption": "AUTO_ONLY", "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}
        return {"name": name, **own, **members}

    @property
    def _nats(self) -> list[dict[str, Any]]:
        nats: list[dict[str, Any]] = self.cloud.google.state.objects[f"compute/{self.router}"].body.get("nats", [])
        assert "other" in [one["name"] for one in nats], "the NAT of another writer is gone"
        return [one for one in nats if one["name"] != "other"]

    def _put(self, nats: list[dict[str, Any]]) -> None:
        self.cloud.edit(self.path, {"nats": [self._nat("other"), *nats]})
        self._edits.append((len(self.cloud.journal.entries), 1 + len(nats)))

    def live(self) -> dict[str, Any] | None:
        return next((one for one in self._nats if one["name"] == NAME), None)

    def objects(self) -> list[str]:
        return [one["name"] for one in self._nats]

    def delete_outside(self) -> None:
        self._put([one for one in self._nats if one["name"] != NAME])

    def create_outside(self, value: Json) -> None:
        self._put([*self._nats, self._nat(NAME, minPortsPerVm=value)])

    def drift(self, member: str, value: Json) -> None:
        self._put([{**one, member: value} if one["name"] == NAME else one for one in self._nats])

    def rewrite(self, member: str, value: Json) -> None:
        rewritten = [self._nat("other"), self._nat(NAME, **{member: value})]
        self.cloud.inject(RewriteField(self.api_kind, "nats", rewritten))

    @property
    def calls(self) -> list[str]:
        """The verb of each call: by how the list of NATs grows or shrinks with it."""
        found, count = list[str](), 1
        for position, entry in enumerate(self.cloud.journal.entries):
            count = next((size for at, size in reversed(self._edits) if at == position), count)
            size = len(entry.body["nats"]) if entry.method == "PATCH" else count
            found.append("get" if entry.method == "GET" else _verb(size - count))
            count = size
        return found


def _verb(growth: int) -> str:
    return {1: "create", -1: "delete"}.get(growth, "update")
