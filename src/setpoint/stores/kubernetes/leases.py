"""Leases of a cluster (coordination.k8s.io): acquired, renewed and released, and when one has expired.

Only the local clock is trusted: a lease has expired when no change of it was observed for its whole duration.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from datetime import datetime
from math import ceil
from typing import Final

import msgspec

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.ports import Clock, Lease
from setpoint.errors import AlreadyExists, RemoteConflict, SetpointError, StoreError
from setpoint.stores.kubernetes.write_bodies import ENGINE_WRITE
from setpoint.stores.lease_rules import unix_seconds

_NO_HOLDER: Final = ""
# How far clocks may differ before a reader takes a live holder for gone.
_CLOCK_SKEW_SECONDS: Final = 30.0


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str
    resource_version: str
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel", gc=False):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None


class ClusterLease(msgspec.Struct, rename="camel", gc=False):
    """The members of a Lease that are read."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)

    @property
    def holder(self) -> str:
        """The holder; empty when it is free."""
        return self.spec.holder_identity or _NO_HOLDER

    @property
    def seconds(self) -> int:
        """How long it lasts from each renewal."""
        return self.spec.lease_duration_seconds or 0

    @property
    def fence(self) -> int:
        """Grows with every change of the holder, from 1."""
        return (self.spec.lease_transitions or 0) + 1

    @property
    def renewed(self) -> float | None:
        """When it was renewed by its holder's clock, in seconds since 1970; None when that is not given."""
        try:
            return datetime.fromisoformat(self.spec.renew_time or "").timestamp()
        except ValueError:
            return None


decode_lease: Final = msgspec.json.Decoder(ClusterLease).decode


@dataclass(frozen=True, slots=True)
class LeaseObservation:
    """A lease, and when it was first observed in this state, by the monotonic clock."""

    lease: ClusterLease
    at: float

    def left(self, now: float) -> float:
        """The seconds until it expires; 0 for one that is free."""
        return self.at + self.lease.seconds - now if self.lease.holder else 0.0


def seconds_presumed_held(observation: LeaseObservation, monotonic: float, wall: float) -> float:
    """The seconds for which its holder is presumed to be there: for readers that do not acquire it.

    On the first observation there is only the time that the holder wrote, by a clock that may differ.
    """
    left, renewed = observation.left(monotonic), observation.lease.renewed
    return left if renewed is None else min(left, renewed + observation.lease.seconds + _CLOCK_SKEW_SECONDS - wall)


def observed(before: LeaseObservation | None, lease: ClusterLease, now: float) -> LeaseObservation:
    """The observation of `lease`: the earlier one when nothing has changed since."""
    is_same = before is not None and before.lease.metadata.resource_version == lease.metadata.resource_version
    return before if is_same and before is not None else LeaseObservation(lease, now)


def lease_body(name: str, holder: str, seconds: float, now: str, before: ClusterLease | None) -> JsonObject:
    """The Lease to write; with `before`, only over that state of it."""
    is_ours = before is not None and before.holder == holder
    transitions = 0 if before is None else before.fence - 1 + (not is_ours)
    acquired = before.spec.acquire_time if before is not None and is_ours else None
    time = micro_time(now)
    spec: dict[str, Json] = {
        "holderIdentity": holder,
        "leaseDurationSeconds": max(1, ceil(seconds)),
        "leaseTransitions": transitions,
        "acquireTime": acquired or time,
        "renewTime": time,
    }
    return _lease(name, spec, before)


def released_body(name: str, before: ClusterLease) -> JsonObject:
    """The Lease released over that state of it: without a holder, with its fence kept."""
    spec: dict[str, Json] = {
        "holderIdentity": _NO_HOLDER,
        "leaseDurationSeconds": max(1, before.seconds),
        "leaseTransitions": before.fence - 1,
    }
    return _lease(name, spec, before)


def micro_time(now: str) -> str:
    """A time as Leases have it: MicroTime."""
    return now.removesuffix("Z") + ".000000Z"


def _lease(name: str, spec: dict[str, Json], before: ClusterLease | None) -> JsonObject:
    metadata: dict[str, Json] = {"name": name}
    if before is not None:
        metadata["resourceVersion"] = before.metadata.resource_version
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


# Attempts when other processes renew the same shared lease at the same time.
_ACQUIRE_ATTEMPTS: Final = 10


class LeaseClient:
    """Acquires, renews and releases the leases of a store, all in one namespace."""

    def __init__(self, client: KubernetesClient, clock: Clock, namespace: str) -> None:
        self._client = client.unthrottled()
        self._clock = clock
        self._all = Endpoint("coordination.k8s.io", "v1", "leases", namespace)
        self._observations: dict[str, LeaseObservation] = {}

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """See Store. A lease that was held by `holder` when last observed is renewed without a read."""
        before = self._observations.get(name)
        if before is None or before.lease.holder != holder:
            before = await self._read(name)
        for _ in range(_ACQUIRE_ATTEMPTS):
            if before is not None and before.lease.holder != holder and before.left(self._clock.monotonic()) > 0:
                return None
            written = await self._write(name, holder, seconds, before)
            if written is not None:
                return written
            # Another writer was faster, or the remembered state was stale: the present state decides. A shared lease
            # is renewed by many at once.
            before = await self._read(name)
            if before is None or before.lease.holder != holder:
                return None
        return None

    async def release(self, lease: Lease) -> None:
        """See Store."""
        found = await self._read(lease.name)
        if found is None or (found.lease.holder, found.lease.fence) != (lease.holder, lease.fence):
            return
        try:
            raw = await self._client.replace(
                self._all.named(lease.name), released_body(lease.name, found.lease), ENGINE_WRITE
            )
        except RemoteConflict:
            self._observations.pop(lease.name, None)
            return
        self._observe(lease.name, decode_lease(raw))

    async def all_of(self, prefix: str) -> tuple[Lease, ...]:
        """See Store."""
        found: dict[str, ClusterLease] = {}
        async for page in self._client.pages(self._all):
            found = {} if page.is_first else found
            leases = map(decode_lease, page.items)
            found |= {one.metadata.name: one for one in leases if one.metadata.name.startswith(prefix)}
        return tuple(self._lease(name, self._observe(name, lease)) for name, lease in sorted(found.items()))

    async def _read(self, name: str) -> LeaseObservation | None:
        raw = await self._client.get(self._all.named(name))
        if raw is None:
            self._observations.pop(name, None)
            return None
        return self._observe(name, decode_lease(raw))

    async def _write(self, name: str, holder: str, seconds: float, before: LeaseObservation | None) -> Lease | None:
        body = lease_body(name, holder, seconds, self._clock.now(), None if before is None else before.lease)
        # Before the request: the lease may be granted at any time after.
        asked = self._clock.monotonic()
        try:
            if before is None:
                raw = await self._client.create(self._all, body, ENGINE_WRITE)
            else:
                raw = await self._client.replace(self._all.named(name), body, ENGINE_WRITE)
        except (AlreadyExists, RemoteConflict):
            self._observations.pop(name, None)
            return None
        observation = self._observations[name] = LeaseObservation(decode_lease(raw), asked)
        return self._lease(name, observation, seconds)

    def _observe(self, name: str, lease: ClusterLease) -> LeaseObservation:
        observation = observed(self._observations.get(name), lease, self._clock.monotonic())
        self._observations[name] = observation
        return observation

    def _lease(self, name: str, observation: LeaseObservation, seconds: float | None = None) -> Lease:
        lease, now, wall = observation.lease, self._clock.monotonic(), unix_seconds(self._clock)
        left = seconds_presumed_held(observation, now, wall) if seconds is None else observation.at + seconds - now
        return Lease(name, lease.holder, lease.fence, wall + left if lease.holder else 0.0)


_NOTES_NAME: Final = "notified-by-setpoint"
_NOTES: Final = "setpoint.dev/notified"
_NOTE_ATTEMPTS: Final = 5


class LeaseNotes:
    """Texts of each shard in annotations of Leases without a holder: the account may write Leases already.

    They are compressed: all annotations of an object have 256 KiB.
    """

    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self._client = client
        self._all = Endpoint("coordination.k8s.io", "v1", "leases", namespace)

    def __str__(self) -> str:
        return f"the Leases {_NOTES_NAME}-*"

    async def read(self, part: int) -> bytes | None:
        """The text of a part; None when there is none yet. StoreError when it cannot be read."""
        try:
            raw = await self._client.get(self._all.named(f"{_NOTES_NAME}-{part}"))
        except SetpointError as error:
            raise StoreError(f"the Lease {_NOTES_NAME}-{part} cannot be read: {error}") from error
        text = None if raw is None else decode_lease(raw).metadata.annotations.get(_NOTES)
        try:
            return None if text is None else zlib.decompress(b64decode(text))
        except (ValueError, zlib.error):
            # It is not ours: what reads it says what to do.
            return b""

    async def write(self, part: int, content: bytes) -> None:
        """Replaces the text of a part; StoreError when that is not possible."""
        name = f"{_NOTES_NAME}-{part}"
        text = b64encode(zlib.compress(content)).decode()
        try:
            for _ in range(_NOTE_ATTEMPTS):
                if await self._is_written(name, text):
                    return
        except SetpointError as error:
            raise StoreError(f"the Lease {name} cannot be written: {error}") from error
        raise StoreError(f"the Lease {name} cannot be written: other processes write it at the same time")

    async def _is_written(self, name: str, text: str) -> bool:
        raw = await self._client.get(self._all.named(name))
        body = _lease(name, {}, None if raw is None else decode_lease(raw))
        body = {**body, "metadata": {**_mapping(body["metadata"]), "annotations": {_NOTES: text}}}
        try:
            if raw is None:
                await self._client.create(self._all, body, ENGINE_WRITE)
            else:
                await self._client.replace(self._all.named(name), body, ENGINE_WRITE)
        except (AlreadyExists, RemoteConflict):
            return False
        return True


def _mapping(value: Json) -> JsonObject:
    assert isinstance(value, dict)
    return value


async def leases_of(clients: Iterable[LeaseClient], prefix: str) -> tuple[Lease, ...]:
    """The leases of several namespaces, sorted by their names."""
    found = [lease for one in clients for lease in await one.all_of(prefix)]
    return tuple(sorted(found, key=lambda lease: lease.name))
