"""Buckets and database instances as a cluster has them once they are settled, and the live objects behind them.

Some of each kind are made by the engine in a local cloud. The others are like one of them, but for what no two share:
names, ids, addresses, certificates, and the digests of all that.
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
from setpoint.engine.context import EngineContext, Settled
from setpoint.engine.kind import AnyKind, Location, Present
from setpoint.engine.ports import SystemClock
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState
from setpoint.engine.step.reconcile import step
from setpoint.errors import RemoteRefused
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.localcloud.cloud import Cloud, CloudRequest
from setpoint.stores.kubernetes.crds import plural_of
from setpoint.stores.kubernetes.served_kinds import ServedKind
from setpoint.stores.memory import MemoryStore

# Where a fleet is written down, in the folder of its cluster.
FLEET: Final = "fleet.json"
# How many of each kind are made by the engine.
_VARIETY: Final = 24
# How many parts the path of a bucket has, and that of an instance.
_KIND_AT: Final = {2: 0, 4: 1}
_LOCAL: Final = "http://local"
# Longer than anything that the local cloud takes its time for.
_A_MINUTE: Final = 60.0
# What of its metadata an author writes; the cluster adds the rest.
_WRITTEN: Final = ("name", "namespace", "labels", "annotations", "finalizers")


class Model(msgspec.Struct, frozen=True):
    """One that the engine has settled: the resource, and the bytes that the service shows of its object."""

    name: str
    resource: dict[str, Any]
    body: bytes
    # What the service made up for it alone.
    addresses: tuple[str, ...] = ()
    certificate: str = ""
    fingerprint: str = ""

    def like_it(self, text: bytes, name: str) -> bytes:
        """`text` with the name of another one, and what the service would have made up for that."""
        if name == self.name:
            return text
        mark = hashlib.sha256(name.encode()).digest()
        text = text.replace(self.name.encode(), name.encode())
        for number, address in enumerate(self.addresses):
            text = text.replace(address.encode(), b"10.%d.%d.%d" % tuple(mark[number : number + 3]))
        if self.certificate:
            text = text.replace(_in_json(self.certificate), _in_json(_certificate(name)))
            text = text.replace(self.fingerprint.encode(), mark.hex()[:40].encode())
        return text


def _in_json(text: str) -> bytes:
    return msgspec.json.encode(text)[1:-1]


def _certificate(name: str) -> str:
    """As long as a server's, and as hard to guess."""
    noise = base64.b64encode(hashlib.shake_256(name.encode()).digest(864)).decode()
    lines = [noise[start : start + 64] for start in range(0, len(noise), 64)]
    return "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""))


class Fleet(msgspec.Struct, frozen=True):
    """So many resources, counted from 0: of each kind in turn, and within a kind like each of its models in turn."""

    count: int
    models: tuple[tuple[Model, ...], ...]

    @staticmethod
    def read(file: Path) -> "Fleet":
        """The fleet that was written there."""
        return msgspec.json.decode(file.read_bytes(), type=Fleet)

    def write(self, file: Path) -> None:
        """For a process that is to see the very same live objects."""
        file.write_bytes(msgspec.json.encode(self))

    @property
    def served(self) -> tuple[ServedKind, ...]:
        """Its kinds, as a cluster has them."""
        kinds = kinds_of(Answers(self))
        return tuple(ServedKind(kind.group, kind.version, kind.name, plural_of(kind)) for kind in kinds)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, under which there is one of each kind."""
        return tuple(buckets.name_of(number) for number in range(-(-self.count // len(self.models))))

    def kind_and_name(self, number: int) -> tuple[int, str]:
        """Which of the kinds that one is of, and what it is called."""
        return number % len(self.models), buckets.name_of(number // len(self.models))

    def model_of(self, kind: int, name: str) -> Model:
        """What the one of that name is like."""
        models = self.models[kind]
        return models[int(name.rpartition("-")[2]) % len(models)]


def kinds_of(google: GoogleClient) -> tuple[AnyKind, ...]:
    """The kinds of a fleet, in the order of its models."""
    return StorageBucketKind(google), SqlInstanceKind(google)


class Answers(GoogleClient):
    """Both services without a network: any object is there, under any name. Nobody may list them."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(HttpClient(), GoogleSettings(auth=GoogleAuth.ANONYMOUS))
        self._fleet = fleet
        self._at_hand: dict[tuple[int, str], bytes] = {}

    async def get(self, call: GoogleCall) -> bytes | None:
        """`b/NAME`, or `projects/PROJECT/instances/NAME`."""
        depth, name = len(call.parts), call.parts[-1]
        found = self._at_hand.get((depth, name))
        if found is not None:
            return found
        if depth not in _KIND_AT:
            raise RemoteRefused("403: nobody may list anything here")
        return self._body(_KIND_AT[depth], name)

    def lay_out(self) -> None:
        """From now on answers are at hand: whoever measures does not see them being made."""
        for depth, kind in _KIND_AT.items():
            self._at_hand |= {(depth, name): self._body(kind, name) for name in self._fleet.names}

    def _body(self, kind: int, name: str) -> bytes:
        model = self._fleet.model_of(kind, name)
        return model.like_it(model.body, name)


# --- The others -------------------------------------------------------------------------------------------------------


class Copier:
    """Makes more of the models: `stored` is each of them as a cluster has stored it, by name, kind by kind."""

    def __init__(self, fleet: Fleet, stored: Sequence[Mapping[str, bytes]]) -> None:
        self._fleet = fleet
        self._stored = stored
        self._kinds = kinds_of(Answers(fleet))

    async def copy(self, number: int) -> bytes:
        """That one as it would be stored."""
        kind, name = self._fleet.kind_and_name(number)
        model = self._fleet.model_of(kind, name)
        stored, memory = self._stored[kind][model.name], StoredState.of(Resource(model.resource))
        assert memory.cookie is not None
        assert memory.body is not None
        assert memory.location is not None
        found = await self._kinds[kind].observe(Location(memory.location.replace(model.name, name)))
        assert isinstance(found, Present)
        assert found.body is not None
        marks = {
            _uids.decode(stored).metadata.uid: str(uuid.uuid5(uuid.NAMESPACE_URL, f"{kind}/{name}")),
            memory.cookie.live: digest(found.live),
            memory.body: found.body,
        }
        text = model.like_it(stored, name)
        for before, after in marks.items():
            text = text.replace(before.encode(), after.encode())
        return text


class _Metadata(msgspec.Struct):
    uid: str


class _Stored(msgspec.Struct):
    metadata: _Metadata


_uids: Final = msgspec.json.Decoder(_Stored)


# --- The models -------------------------------------------------------------------------------------------------------


def new_fleet(count: int) -> Fleet:
    """Made of models that the engine has just settled."""
    return asyncio.run(_new_fleet(count))


async def _new_fleet(count: int) -> Fleet:
    http, clock = _InProcess(Cloud()), SystemClock()
    kinds = kinds_of(GoogleClient(http, GoogleSettings(_LOCAL, _LOCAL, GoogleAuth.ANONYMOUS)))
    store = MemoryStore(clock, lambda: str(uuid.uuid4()))
    engine = EngineContext(store, clock, {(kind.group, kind.name): kind for kind in kinds})
    numbers = range(min(_VARIETY, count // len(kinds)))
    return Fleet(
        count,
        (
            tuple([await _settled(bucket(number), engine, http) for number in numbers]),
            tuple([await _settled(instance(number), engine, http) for number in numbers]),
        ),
    )


async def _settled(manifest: JsonObject, engine: EngineContext, http: "_InProcess") -> Model:
    ref = (await engine.store.apply(manifest)).ref
    while not isinstance(outcome := await step(ref, engine), Settled):
        http.cloud.advance(_A_MINUTE)
    assert outcome.ready.status == "True", outcome
    resource = await engine.store.get(ref)
    assert resource is not None
    # What the last look saw: nothing was written after it.
    live = msgspec.json.decode(http.last)
    certificate = live.get("serverCaCert", {"cert": "", "sha1Fingerprint": ""})
    return Model(
        ref.name,
        _as_written(resource.document),
        http.last,
        tuple(one["ipAddress"] for one in live.get("ipAddresses", ())),
        certificate["cert"],
        certificate["sha1Fingerprint"],
    )


def _as_written(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in document["metadata"].items() if name in _WRITTEN}
    return {**document, "metadata": metadata}


class _InProcess(HttpClient):
    """The way to a local cloud that is on no network; `last` is its last good answer to a question."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__()
        self.cloud = cloud
        self.last = b""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """What the cloud says."""
        parts = urlsplit(request.url)
        query = dict(parse_qsl(parts.query))
        asked = CloudRequest(request.method, parts.path, query, request.body or b"", "application/json")
        answer = self.cloud.handle(asked)
        assert answer is not None
        body = b"" if answer.body is None else msgspec.json.encode(answer.body)
        if request.method == "GET" and answer.status == HTTPStatus.OK:
            self.last = body
        return HttpResponse(answer.status, answer.headers, body)
