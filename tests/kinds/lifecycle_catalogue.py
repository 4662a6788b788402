"""The lifecycle fixture of a kind of the catalogue: one object of one row, in the local cloud."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from setpoint.catalogue.rows import facts_of
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.values.json_types import Json
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.testing import (
    MovedObject,
    Part,
    ReferringSpec,
    Spec,
    SpecifiedField,
    UnspecifiedField,
)
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, TOLD, GoogleFixture

_AT_ONCE: Final = "the service answers when it is done: there are no operations"
NAME: Final = "some-object"


class CatalogueFixture(GoogleFixture):
    """An object of a row."""

    group: ClassVar[str]
    kind_name: ClassVar[str]
    host: ClassVar[str]
    prefix: ClassVar[str]
    # The relative name of the object, and of its collection.
    location: ClassVar[str]
    # What a creation by another writer sends, beside the member of `field`.
    body: ClassVar[Mapping[str, Any]] = {}

    def open_client(self) -> GoogleClient:
        settings = GoogleSettings(self.cloud.url, self.cloud.url, GoogleAuth.ANONYMOUS, base=self.cloud.url)
        return GoogleClient(HttpClient(), settings)

    def new_kind(self, client: GoogleClient) -> AnyKind:
        return GoogleKind.of(facts_of((self.group, self.kind_name)), client)

    @property
    def _key(self) -> str:
        return f"{self.host.partition('.')[0]}/{self.location}"

    def live(self) -> dict[str, Any] | None:
        found = self.cloud.google.state.objects.get(self._key)
        return None if found is None else found.body

    def objects(self) -> list[str]:
        collection = self._key.rpartition("/")[0]
        return [one.rpartition("/")[2] for one in self.cloud.google.state.objects if one.startswith(f"{collection}/")]

    def delete_outside(self) -> None:
        del self.cloud.google.state.objects[self._key]


class TopicFixture(CatalogueFixture):
    """A topic of Pub/Sub: PATCH with a mask in the body, no operations."""

    group = "pubsub.cnrm.cloud.google.com"
    kind_name = "PubSubTopic"
    host = "pubsub.googleapis.com"
    prefix = "v1"
    location = f"projects/{PROJECT}/topics/{NAME}"
    path = f"/pubsub.googleapis.com/v1/{location}"
    api_kind = "PubSubTopic"
    methods: ClassVar[Mapping[str, str]] = {"get": "GET", "create": "PUT", "update": "PATCH", "delete": "DELETE"}
    without: ClassVar[Mapping[Part, str]] = {
        **TOLD,
        Part.OPERATIONS: _AT_ONCE,
        Part.OWN_ABANDON: "the spec of a topic does not speak of deletion",
        Part.SECRET: "nothing in a topic is secret",
        Part.SLOW_CREATE: _AT_ONCE,
        Part.STATELESS: "it keeps a cookie",
        Part.IMMUTABLE: "every field of a topic can change",
        Part.PROTECTION: "no field of a topic is protected",
        Part.PRUNING: "the service fills in what the spec never had",
        Part.MOVING_OUTPUT: "a topic has no output that moves by itself",
    }
    ref = ResourceRef(group, kind_name, NAMESPACE, NAME)
    minimal: ClassVar[Spec] = {}
    field = SpecifiedField("spec.messageRetentionDuration", "3600s", "7200s", "10800s")
    labels_member = "labels"
    moved = MovedObject({"resourceID": "another-topic"}, "another-topic")
    unspecified = UnspecifiedField("spec.messageStoragePolicy", {"allowedPersistenceRegions": ["europe-west1"]})
    outputs: ClassVar[Mapping[str, Json]] = {"externalRef": location}
    referring = ReferringSpec(
        {"kmsKeyRef": {"name": "key"}},
        {
            "apiVersion": "kms.cnrm.cloud.google.com/v1beta1",
            "kind": "KMSCryptoKey",
            "metadata": {"name": "key", "namespace": NAMESPACE},
            "spec": {},
        },
        "reference KMSCryptoKey team/key",
        {"setpoint": {"location": "projects/some-project/locations/eu/keyRings/ring/cryptoKeys/key"}},
    )

    def create_outside(self, value: Json) -> None:
        body = {"messageRetentionDuration": value, "labels": {"managed-by-cnrm": "true"}}
        assert self.cloud.call("PUT", self.path, body).status == 200
        self.cloud.journal.clear()
