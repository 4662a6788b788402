"""Leases of the cluster, as coordination.k8s.io knows them, and when one has run out.

Nobody's clock is trusted but our own: a lease has run out when we saw no change of it for as long as it lasts.
"""

from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Final

import msgspec

from setpoint.core.values import Json
from setpoint.engine.resource import Tree

_NOBODY: Final = ""
# How far the clocks of a cluster's machines may be apart before somebody who lives is taken for dead by onlookers.
_SKEW: Final = 30.0


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str
    resource_version: str


class _Spec(msgspec.Struct, rename="camel", gc=False):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None


class ClusterLease(msgspec.Struct, rename="camel", gc=False):
    """A Lease, as far as we read it."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)

    @property
    def holder(self) -> str:
        """Who holds it; empty for nobody."""
        return self.spec.holder_identity or _NOBODY

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
        """When it was renewed by its holder's clock, in seconds since 1970; None when it does not say."""
        try:
            return datetime.fromisoformat(self.spec.renew_time or "").timestamp()
        except ValueError:
            return None


lease_in: Final = msgspec.json.Decoder(ClusterLease).decode


@dataclass(frozen=True, slots=True)
class Sighting:
    """A lease, and when it was first seen like this, by the clock that never runs backwards."""

    lease: ClusterLease
    at: float

    def left(self, now: float) -> float:
        """The seconds until it has run out; none for one that nobody holds."""
        return self.at + self.lease.seconds - now if self.lease.holder else 0.0


def left_of(sighting: Sighting, monotonic: float, wall: float) -> float:
    """The seconds for which its holder may be taken to be there: for those who only want to know.

    Who sees a lease for the first time knows nothing of its past but what its holder wrote, by a clock that may differ.
    """
    left, renewed = sighting.left(monotonic), sighting.lease.renewed
    return left if renewed is None else min(left, renewed + sighting.lease.seconds + _SKEW - wall)


def seen(before: Sighting | None, lease: ClusterLease, now: float) -> Sighting:
    """The sighting of `lease`: the earlier one when nothing has changed since."""
    is_same = before is not None and before.lease.metadata.resource_version == lease.metadata.resource_version
    return before if is_same and before is not None else Sighting(lease, now)


def lease_body(name: str, holder: str, seconds: float, now: str, before: ClusterLease | None) -> Tree:
    """The Lease to write; with `before`, only over that very state of it."""
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


def freed_body(name: str, before: ClusterLease) -> Tree:
    """The Lease given back over that very state of it: nobody's, with its fence on record."""
    spec: dict[str, Json] = {
        "holderIdentity": _NOBODY,
        "leaseDurationSeconds": max(1, before.seconds),
        "leaseTransitions": before.fence - 1,
    }
    return _lease(name, spec, before)


def micro_time(now: str) -> str:
    """A time to the second as the cluster writes times of leases."""
    return now.removesuffix("Z") + ".000000Z"


def _lease(name: str, spec: dict[str, Json], before: ClusterLease | None) -> Tree:
    metadata: dict[str, Json] = {"name": name}
    if before is not None:
        metadata["resourceVersion"] = before.metadata.resource_version
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
