"""A running manager over gadgets that can be listed: the part of a name before the dash is the list scope."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec

from setpoint.clients.listed_page import ListedPage
from setpoint.core.values.json_types import Json
from setpoint.engine.capabilities import ListScope
from setpoint.engine.kind import Location, Present
from setpoint.errors import RemoteUnavailable
from setpoint.runtime.list_resync.lister import ListResync
from simulation.virtual_time import run
from tests.engine.gadgets import Gadget, Service
from tests.runtime.manager_harness import ManagerHarness, RecordingKind, new_harness, running

Members = dict[str, Json]


@dataclass(slots=True)
class ListedKind(RecordingKind):
    """`a-1` and `a-2` are in the scope `a`; a name without a dash is in none."""

    size: int = 1_000
    # When each page was asked for; which items were decoded.
    pages_read: list[float] = field(default_factory=list)
    decoded: list[str] = field(default_factory=list)
    # How many pages were looked through for their items.
    pages_found: int = 0
    # Of which items the location was decoded.
    located: list[str] = field(default_factory=list)
    # Objects that no list shows, and how lists show the rest.
    hidden: set[str] = field(default_factory=set)
    shown: Callable[[str, Members], Members] = lambda name, members: members
    # Awaited before a page is read, and after: what it shows may be old by then.
    before_page: Callable[[], Awaitable[None]] | None = None
    after_page: Callable[[], Awaitable[None]] | None = None

    def list_scope_of(self, location: Location) -> ListScope | None:
        list_scope, dash, _ = location.partition("-")
        return ListScope(list_scope) if dash else None

    async def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        start, is_over = 0, False
        while not is_over:
            self.pages_read.append(self.clock.monotonic())
            if self.before_page is not None:
                await self.before_page()
            names = self.service.ask("list", list_scope, lambda: sorted(self.service.objects))
            mine = [
                name for name in names if self.list_scope_of(Location(name)) == list_scope and name not in self.hidden
            ]
            page = [self.item(name) for name in mine[start : start + self.size]]
            start, is_over = start + self.size, start + self.size >= len(mine)
            if self.after_page is not None:
                await self.after_page()
            yield ListedPage(sha256(b"".join(page)).digest(), partial(self._found, page))

    def _found(self, page: list[bytes]) -> list[bytes]:
        self.pages_found += 1
        return page

    def item(self, name: str) -> bytes:
        """An object as a list shows it."""
        return msgspec.json.encode({"listed": True, "name": name, **self.shown(name, self.service.objects[name])})

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        location = Location(str(msgspec.json.decode(item)["name"]))
        self.located.append(location)
        return location

    def read_item(self, item: bytes, location: Location) -> Present[Gadget] | None:
        self.decoded.append(location)
        members: dict[str, Any] = msgspec.json.decode(item)
        if "unreadable" in members:
            return None
        outputs = {"address": f"10.0.0.{members.get('size', 0)}", "serial": members.get("serial", "1")}
        try:
            return Present(msgspec.convert(members, Gadget), outputs=outputs)
        except msgspec.ValidationError as error:
            raise RemoteUnavailable(f"{location}: {error}") from error


@dataclass(slots=True)
class ListResyncHarness:
    """A manager, and the kind that it lists."""

    harness: ManagerHarness
    kind: ListedKind

    @property
    def list_resync(self) -> ListResync:
        (controller,) = self.harness.manager.controllers.values()
        assert isinstance(controller.list_resync, ListResync)
        return controller.list_resync

    @property
    def running_listings(self) -> int:
        """How many run now; none before the kind has a controller."""
        return self.list_resync.running_listings if self.harness.manager.controllers else 0

    @property
    def listings(self) -> list[tuple[str, int]]:
        """The result of each listing, and how many resyncs it saved."""
        return self.harness.metrics.listings

    async def declare(self, *names: str, **metadata: Any) -> None:
        """Gadgets of size 1, created and settled."""
        for name in names:
            await self.harness.apply(name, **metadata)
        await self.harness.settled(*names)

    def reset_counts(self) -> None:
        """Resets all counts."""
        self.kind.observed.clear()
        self.kind.pages_read.clear()
        self.kind.decoded.clear()
        self.kind.located.clear()
        self.kind.pages_found = 0
        self.listings.clear()

    def observations(self, *names: str) -> list[int]:
        """How often each was observed directly."""
        return [len(self.harness.observations_of(name)) for name in names]


def names_in(list_scope: str, count: int) -> tuple[str, ...]:
    """So many names in a list scope."""
    return tuple(f"{list_scope}-{number:03}" for number in range(count))


def new_list_harness(before: ListResyncHarness | None = None) -> ListResyncHarness:
    """A manager that was not started: on the store and service of the one before, if there was one."""
    if before is None:
        kind = ListedKind(Service())
        return ListResyncHarness(new_harness(kind=kind), kind)
    kind = ListedKind(before.harness.service)
    return ListResyncHarness(new_harness(before.harness.store, kind=kind), kind)


def play_list_resync(scenario: Callable[[ListResyncHarness], Awaitable[None]]) -> None:
    """Plays `scenario` with a process that runs, in virtual time."""

    async def main() -> None:
        listed = new_list_harness()
        async with running(listed.harness):
            await scenario(listed)

    run(main())
