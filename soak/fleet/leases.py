"""Who holds what, as the Lease objects of the cluster tell it, and for how long a shard had no holder."""

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from soak.fleet.api import Api, Tree

SHARD: Final = "setpoint-shard-"


class Sighting(NamedTuple):
    """When a change of a lease was seen, and whose it was then; empty when it was released."""

    at: float
    holder: str


class Change(NamedTuple):
    """A lease that changed hands. `since` is when the old holder renewed it for the last time, or gave it back."""

    lease: str
    before: str
    after: str
    since: float
    at: float
    given_back: bool


@dataclass(slots=True)
class LeaseWatch:
    """Sees every change, as soon as the API server tells of it."""

    api: Api
    path: str
    listed_objects: dict[str, list[Sighting]] = field(default_factory=dict)

    @staticmethod
    def of(api: Api, namespace: str) -> "LeaseWatch":
        """The one for the leases in `namespace`."""
        return LeaseWatch(api, f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")

    async def watch_for_ever(self) -> None:
        """Until it is cancelled. The API server ends a watch now and then."""
        while True:
            listed = await self.api.get(self.path)
            for one in listed["items"]:
                self._see(one)
            async for event in self.api.watch(self.path, listed["metadata"]["resourceVersion"]):
                if event["type"] == "ERROR":
                    break
                self._see(event["object"])

    def holders(self) -> Mapping[str, str]:
        """The holder of each shard that has one now."""
        last = {name: seen[-1].holder for name, seen in self.listed_objects.items() if name.startswith(SHARD)}
        return {name: holder for name, holder in last.items() if holder}

    async def shorten(self, holders: Collection[str]) -> None:
        """Lets the leases of dead holders expire after a second, instead of 15."""
        for lease in (await self.api.get(self.path))["items"]:
            if lease["spec"].get("holderIdentity") in holders:
                await self.api.change(f"{self.path}/{lease['metadata']['name']}", {"spec": {"leaseDurationSeconds": 1}})

    def changes(self) -> list[Change]:
        """Every shard that changed hands, oldest first."""
        found = [change for name in self.listed_objects if name.startswith(SHARD) for change in self._changes_of(name)]
        return sorted(found, key=lambda change: change.at)

    def _changes_of(self, name: str) -> Iterator[Change]:
        holder, since, given_back = "", 0.0, False
        for at, seen in self.listed_objects[name]:
            if seen and holder and seen != holder:
                yield Change(name, holder, seen, since, at, given_back)
            given_back = not seen
            holder, since = seen or holder, at

    def _see(self, lease: Tree) -> None:
        seen = self.listed_objects.setdefault(lease["metadata"]["name"], [])
        seen.append(Sighting(time.monotonic(), lease["spec"].get("holderIdentity") or ""))
