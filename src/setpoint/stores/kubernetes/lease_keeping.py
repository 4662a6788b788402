"""Holds, renews and gives back leases of the cluster."""

from typing import Final

from setpoint.clients.kube_endpoints import Endpoint
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.engine.ports import Clock, Lease
from setpoint.errors import AlreadyExists, RemoteConflict
from setpoint.stores.kubernetes.authors import ENGINE
from setpoint.stores.kubernetes.tenancies import (
    ClusterLease,
    Sighting,
    freed_body,
    lease_body,
    lease_in,
    left_of,
    seen,
)
from setpoint.stores.leases import wall_seconds

# How often somebody else who holds it as well may be quicker.
_TRIES: Final = 10


class LeaseKeeper:
    """The leases of a store, all in one namespace."""

    def __init__(self, client: KubernetesClient, clock: Clock, namespace: str) -> None:
        self._client = client.at_once()
        self._clock = clock
        self._all = Endpoint("coordination.k8s.io", "v1", "leases", namespace)
        self._sightings: dict[str, Sighting] = {}

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """See Store. A lease that we saw as ours last time is renewed without reading it first."""
        before = self._sightings.get(name)
        if before is None or before.lease.holder != holder:
            before = await self._look(name)
        for _ in range(_TRIES):
            if before is not None and before.lease.holder != holder and before.left(self._clock.monotonic()) > 0:
                return None
            written = await self._write(name, holder, seconds, before)
            if written is not None:
                return written
            # Somebody was quicker, or our memory was of the past: what there is now decides. One that is held in
            # common is renewed by many at once.
            before = await self._look(name)
            if before is None or before.lease.holder != holder:
                return None
        return None

    async def release(self, lease: Lease) -> None:
        """See Store."""
        found = await self._look(lease.name)
        if found is None or (found.lease.holder, found.lease.fence) != (lease.holder, lease.fence):
            return
        try:
            raw = await self._client.replace(self._all.named(lease.name), freed_body(lease.name, found.lease), ENGINE)
        except RemoteConflict:
            self._sightings.pop(lease.name, None)
            return
        self._see(lease.name, lease_in(raw))

    async def all_of(self, prefix: str) -> tuple[Lease, ...]:
        """See Store."""
        found: dict[str, ClusterLease] = {}
        async for page in self._client.pages(self._all):
            found = {} if page.is_first else found
            leases = map(lease_in, page.items)
            found |= {one.metadata.name: one for one in leases if one.metadata.name.startswith(prefix)}
        return tuple(self._lease(name, self._see(name, lease)) for name, lease in sorted(found.items()))

    async def _look(self, name: str) -> Sighting | None:
        raw = await self._client.get(self._all.named(name))
        if raw is None:
            self._sightings.pop(name, None)
            return None
        return self._see(name, lease_in(raw))

    async def _write(self, name: str, holder: str, seconds: float, before: Sighting | None) -> Lease | None:
        body = lease_body(name, holder, seconds, self._clock.now(), None if before is None else before.lease)
        # Before the request: it may have been granted any time since.
        asked = self._clock.monotonic()
        try:
            if before is None:
                raw = await self._client.create(self._all, body, ENGINE)
            else:
                raw = await self._client.replace(self._all.named(name), body, ENGINE)
        except (AlreadyExists, RemoteConflict):
            self._sightings.pop(name, None)
            return None
        sighting = self._sightings[name] = Sighting(lease_in(raw), asked)
        return self._lease(name, sighting, seconds)

    def _see(self, name: str, lease: ClusterLease) -> Sighting:
        sighting = seen(self._sightings.get(name), lease, self._clock.monotonic())
        self._sightings[name] = sighting
        return sighting

    def _lease(self, name: str, sighting: Sighting, seconds: float | None = None) -> Lease:
        lease, now, wall = sighting.lease, self._clock.monotonic(), wall_seconds(self._clock)
        left = left_of(sighting, now, wall) if seconds is None else sighting.at + seconds - now
        return Lease(name, lease.holder, lease.fence, wall + left if lease.holder else 0.0)
