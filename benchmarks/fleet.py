"""A fleet: settled buckets and database instances as a cluster stores them, and their live objects.

Some of each kind, the templates, are settled by the engine in a local cloud. The others are copies of a template with
their own name, ids, addresses and certificate, and the digests of those.
"""

import asyncio
import base64
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from benchmarks import buckets
from benchmarks.fleet_manifests import bucket, instance
from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind, Location, Present
from setpoint.engine.ports import SystemClock
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.errors import RemoteRefused
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.localcloud.cloud import Cloud, CloudRequest
from setpoint.stores.kubernetes.crds import plural_of
from setpoint.stores.kubernetes.served_kinds import ServedKind
from setpoint.stores.memory import MemoryStore

# The file of a fleet, in the folder of its cluster.
FLEET: Final = "fleet.json"
# How many of each kind are settled by the engine.
_TEMPLATES_PER_KIND: Final = 24
# The index of the kind by the number of parts in the path of an object: a bucket has 2, an instance 4.
_KIND_BY_DEPTH: Final = {2: 0, 4: 1}
_LOCAL: Final = "http://local"
# Longer than any operation of the local cloud.
_ADVANCE_SECONDS: Final = 60.0
# The metadata that is sent to the cluster, which adds the rest.
_AUTHOR_METADATA: Final = ("name", "namespace", "labels", "annotations", "finalizers")


class Template(msgspec.Struct, frozen=True):
    """A resource that the engine has settled, and the bytes of its live object."""

    name: str
    resource: dict[str, Any]
    body: bytes
    # Values that the service generated for this object.
    addresses: tuple[str, ...] = ()
    certificate: str = ""
    fingerprint: str = ""

    def copy_for(self, text: bytes, name: str) -> bytes:
        """`text` with another name, and with generated values for that name."""
        if name == self.name:
            return text
        name_digest = hashlib.sha256(name.encode()).digest()
        text = text.replace(self.name.encode(), name.encode())
        for number, address in enumerate(self.addresses):
            text = text.replace(address.encode(), b"10.%d.%d.%d" % tuple(name_digest[number : number + 3]))
        if self.certificate:
            text = text.replace(_json_escaped(self.certificate), _json_escaped(_certificate(name)))
            text = text.replace(self.fingerprint.encode(), name_digest.hex()[:40].encode())
        return text


def _json_escaped(text: str) -> bytes:
    return msgspec.json.encode(text)[1:-1]


def _certificate(name: str) -> str:
    """Random text as long as a certificate, always the same for a name."""
    noise = base64.b64encode(hashlib.shake_256(name.encode()).digest(864)).decode()
    lines = [noise[start : start + 64] for start in range(0, len(noise), 64)]
    return "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""))


class Fleet(msgspec.Struct, frozen=True):
    """`count` resources, numbered from 0: the kinds alternate, and within a kind the templates do."""

    count: int
    templates: tuple[tuple[Template, ...], ...]

    @staticmethod
    def read(file: Path) -> "Fleet":
        """The fleet that `write` wrote to `file`."""
        return msgspec.json.decode(file.read_bytes(), type=Fleet)

    def write(self, file: Path) -> None:
        """Writes the fleet, for a process that needs the same live objects."""
        file.write_bytes(msgspec.json.encode(self))

    @property
    def served(self) -> tuple[ServedKind, ...]:
        """The kinds of the fleet as a cluster serves them."""
        kinds = kinds_of(InMemoryServices(self))
        return tuple(ServedKind(kind.group, kind.version, kind.name, plural_of(kind)) for kind in kinds)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name; there is a resource of each kind for each name."""
        return tuple(buckets.name_of(number) for number in range(-(-self.count // len(self.templates))))

    def kind_and_name(self, number: int) -> tuple[int, str]:
        """The index of the kind of a resource, and its name."""
        return number % len(self.templates), buckets.name_of(number // len(self.templates))

    def template_of(self, kind: int, name: str) -> Template:
        """The template of the resource with that name."""
        templates = self.templates[kind]
        return templates[int(name.rpartition("-")[2]) % len(templates)]


def kinds_of(google: GoogleClient) -> tuple[AnyKind, ...]:
    """The kinds of a fleet, in the order of its templates."""
    return StorageBucketKind(google), SqlInstanceKind(google)


class InMemoryServices(GoogleClient):
    """Cloud Storage and Cloud SQL without a network: every name has an object. Lists are refused."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(HttpClient(), GoogleSettings(auth=GoogleAuth.ANONYMOUS))
        self._fleet = fleet
        self._prepared: dict[tuple[int, str], bytes] = {}

    async def get(self, call: GoogleCall) -> bytes | None:
        """`b/NAME`, or `projects/PROJECT/instances/NAME`."""
        depth, name = len(call.parts), call.parts[-1]
        prepared = self._prepared.get((depth, name))
        if prepared is not None:
            return prepared
        if depth not in _KIND_BY_DEPTH:
            raise RemoteRefused("403: listing is not allowed")
        return self._body(_KIND_BY_DEPTH[depth], name)

    def prepare_responses(self) -> None:
        """Builds all responses now, so that their cost is not measured."""
        for depth, kind in _KIND_BY_DEPTH.items():
            self._prepared |= {(depth, name): self._body(kind, name) for name in self._fleet.names}

    def _body(self, kind: int, name: str) -> bytes:
        template = self._fleet.template_of(kind, name)
        return template.copy_for(template.body, name)


# --- Copies of templates ----------------------------------------------------------------------------------------------


class TemplateCopier:
    """Copies templates: `stored` holds, for each kind, the bytes of each template as the cluster stores it, by name."""

    def __init__(self, fleet: Fleet, stored: Sequence[Mapping[str, bytes]]) -> None:
        self._fleet = fleet
        self._stored = stored
        self._kinds = kinds_of(InMemoryServices(fleet))

    async def copy(self, number: int) -> bytes:
        """The bytes of the resource with that number, as the cluster would store it."""
        kind, name = self._fleet.kind_and_name(number)
        template = self._fleet.template_of(kind, name)
        stored, state = self._stored[kind][template.name], StoredState.of(Resource(template.resource))
        assert state.cookie is not None
        assert state.body is not None
        assert state.location is not None
        observation = await self._kinds[kind].observe(Location(state.location.replace(template.name, name)))
        assert isinstance(observation, Present)
        assert observation.body is not None
        replacements = {
            _uids.decode(stored).metadata.uid: str(uuid.uuid5(uuid.NAMESPACE_URL, f"{kind}/{name}")),
            state.cookie.live: digest(observation.live),
            state.body: observation.body,
        }
        text = template.copy_for(stored, name)
        for before, after in replacements.items():
            text = text.replace(before.encode(), after.encode())
        return text


class _Metadata(msgspec.Struct):
    uid: str


class _Stored(msgspec.Struct):
    metadata: _Metadata


_uids: Final = msgspec.json.Decoder(_Stored)


# --- Templates --------------------------------------------------------------------------------------------------------


def new_fleet(count: int) -> Fleet:
    """A fleet whose templates are settled by the engine now."""
    return asyncio.run(_new_fleet(count))


async def _new_fleet(count: int) -> Fleet:
    http, clock = _LocalCloudHttp(Cloud()), SystemClock()
    kinds = kinds_of(GoogleClient(http, GoogleSettings(_LOCAL, _LOCAL, GoogleAuth.ANONYMOUS)))
    store = MemoryStore(clock, lambda: str(uuid.uuid4()))
    engine = EngineContext(store, clock, {(kind.group, kind.name): kind for kind in kinds})
    numbers = range(min(_TEMPLATES_PER_KIND, count // len(kinds)))
    return Fleet(
        count,
        (
            tuple([await _settled_template(bucket(number), engine, http) for number in numbers]),
            tuple([await _settled_template(instance(number), engine, http) for number in numbers]),
        ),
    )


async def _settled_template(manifest: JsonObject, engine: EngineContext, http: "_LocalCloudHttp") -> Template:
    ref = (await engine.store.apply(manifest)).ref
    while not isinstance(outcome := await step(ref, engine), Settled):
        http.cloud.advance(_ADVANCE_SECONDS)
    assert outcome.ready.status == "True", outcome
    resource = await engine.store.get(ref)
    assert resource is not None
    # The last observation: nothing was written after it.
    live = msgspec.json.decode(http.last_body)
    certificate = live.get("serverCaCert", {"cert": "", "sha1Fingerprint": ""})
    return Template(
        ref.name,
        _without_server_metadata(resource.document),
        http.last_body,
        tuple(address["ipAddress"] for address in live.get("ipAddresses", ())),
        certificate["cert"],
        certificate["sha1Fingerprint"],
    )


def _without_server_metadata(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in document["metadata"].items() if name in _AUTHOR_METADATA}
    return {**document, "metadata": metadata}


class _LocalCloudHttp(HttpClient):
    """Sends requests to a local cloud in this process; `last_body` is that of the last successful GET."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__()
        self.cloud = cloud
        self.last_body = b""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The response of the cloud."""
        parts = urlsplit(request.url)
        query = dict(parse_qsl(parts.query))
        cloud_request = CloudRequest(request.method, parts.path, query, request.body or b"", "application/json")
        response = self.cloud.handle(cloud_request)
        assert response is not None
        body = b"" if response.body is None else msgspec.json.encode(response.body)
        if request.method == "GET" and response.status == HTTPStatus.OK:
            self.last_body = body
        return HttpResponse(response.status, response.headers, body)
