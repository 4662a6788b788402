"""The holders of shards by the Lease objects of the cluster, and for how long a shard had none."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from soak.fleet.api import Api, Tree

SHARD: Final = "setpoint-shard-"


class LeaseObservation(NamedTuple):
    """When a change of a lease was observed, and its holder then; empty when it was released."""

    at: float
    holder: str


class Change(NamedTuple):
    """A lease with a new holder. `since` is when the old holder renewed it for the last time, or released it."""

    lease: str
    before: str
    after: str
    since: float
    at: float
    was_released: bool


@dataclass(slots=True)
class LeaseWatch:
    """Observes every change of the leases."""

    api: Api
    path: str
    observations: dict[str, list[LeaseObservation]] = field(default_factory=dict)

    @staticmethod
    def of(api: Api, namespace: str) -> "LeaseWatch":
        """The one for the leases in `namespace`."""
        return LeaseWatch(api, f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")

    async def watch_until_cancelled(self) -> None:
        """Until it is cancelled. The API server ends a watch now and then."""
        while True:
            listed = await self.api.get(self.path)
            for one in listed["items"]:
                self._observe(one)
            async for event in self.api.watch(self.path, listed["metadata"]["resourceVersion"]):
                if event["type"] == "ERROR":
                    break
                self._observe(event["object"])

    def holders(self) -> Mapping[str, str]:
        """The holder of each shard that has one now."""
        last = {name: seen[-1].holder for name, seen in self.observations.items() if name.startswith(SHARD)}
        return {name: holder for name, holder in last.items() if holder}

    def changes(self) -> list[Change]:
        """Every change of a shard's holder, oldest first."""
        found = [change for name in self.observations if name.startswith(SHARD) for change in self._changes_of(name)]
        return sorted(found, key=lambda change: change.at)

    def _changes_of(self, name: str) -> Iterator[Change]:
        holder, since, was_released = "", 0.0, False
        for at, seen in self.observations[name]:
            if seen and holder and seen != holder:
                yield Change(name, holder, seen, since, at, was_released)
            was_released = not seen
            holder, since = seen or holder, at

    def _observe(self, lease: Tree) -> None:
        seen = self.observations.setdefault(lease["metadata"]["name"], [])
        seen.append(LeaseObservation(time.monotonic(), lease["spec"].get("holderIdentity") or ""))
