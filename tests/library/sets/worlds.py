"""Sources and stores of sets for tests: versions that are handed over, and a store that ends a process anywhere."""

import base64
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource
from setpoint.engine.sets.resource_set import set_of
from setpoint.errors import ManifestInvalid
from setpoint.library.sets.snapshot import Snapshot, SourceFile, digest_of_files
from setpoint.library.sets.sync import NamedSource, SetSync, SyncOptions
from setpoint.stores.memory import MemoryStore
from setpoint.testing.clock import VirtualClock

T = TypeVar("T")

# Longer than anything here waits for a step: no controller takes any.
LONG = 100.0


def secret(name: str, value: str = "a") -> str:
    """The manifest of an object that is only stored: it is there and gone at once."""
    return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{key: {value}}}\n"


@dataclass(slots=True)
class GivenSource:
    """A source whose files are what a test says. Without any files it cannot be read."""

    name: str
    files: Mapping[str, str] | None = field(default_factory=dict)
    settles: bool = False

    @property
    def address(self) -> str:
        """See Source."""
        return f"given:{self.name}"

    @property
    def default_name(self) -> str:
        """See Source."""
        return self.name

    @property
    def place(self) -> str:
        """See Source."""
        return self.address

    async def look(self) -> str:
        """See Source."""
        return (await self._read()).revision

    async def snapshot(self, seen: str) -> Snapshot:
        """See Source."""
        found = await self._read()
        assert found.revision == seen
        return found

    async def _read(self) -> Snapshot:
        if self.files is None:
            raise ManifestInvalid(f"{self.address}: gone")
        files = tuple(SourceFile(path, text.encode()) for path, text in sorted(self.files.items()))
        return Snapshot(digest_of_files(files), files)


class ProcessKilled(BaseException):
    """Ends what a test runs as kill -9 would: nothing catches it."""


class KillingStore:
    """A store that ends the process before or after one of its calls."""

    def __init__(self, behind: Any) -> None:
        self.behind = behind
        # After so many calls; before that one or after it.
        self.calls_left = -1
        self.is_after = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.behind, name)
        if not callable(found):
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            return await self._counted(found(*arguments, **named))

        return call

    async def _counted(self, work: Awaitable[T]) -> T:
        if self.calls_left == 0 and not self.is_after:
            self.calls_left = -1
            _drop(work)
            raise ProcessKilled
        result = await work
        if self.calls_left == 0:
            self.calls_left = -1
            raise ProcessKilled
        self.calls_left -= 1
        return result

    # The runtime looks for these in the class.
    async def declare(self, *arguments: Any) -> Any:
        """See SetStore."""
        return await self._counted(self.behind.declare(*arguments))

    async def prune(self, *arguments: Any) -> Any:
        """See SetStore."""
        return await self._counted(self.behind.prune(*arguments))

    async def keep_set(self, *arguments: Any) -> Any:
        """See SetStore."""
        return await self._counted(self.behind.keep_set(*arguments))

    async def sets(self) -> Any:
        """See SetStore."""
        return await self._counted(self.behind.sets())


def _drop(work: Awaitable[object]) -> None:
    close = getattr(work, "close", None)
    if close is not None:
        close()


@dataclass(slots=True)
class SetWorld:
    """An engine on a store in memory, and the process that keeps sets there."""

    engine: EngineContext
    store: KillingStore
    clock: VirtualClock
    sources: list[GivenSource]
    sync: SetSync

    def restart(self, *, adopts: bool = False, allow_empty: bool = False) -> None:
        """A new process on the same store."""
        named = [NamedSource(one.name, one) for one in self.sources]
        self.sync = SetSync(named, self.engine, SyncOptions(adopts=adopts, allow_empty=allow_empty))

    async def settle(self) -> None:
        """Lets the process go on until nothing is left to do."""
        for _ in range(4):
            await self.sync.tick()
            self.clock.seconds += LONG

    async def members(self) -> dict[str, dict[str, str]]:
        """The values of all stored objects, by set and name."""
        found: dict[str, dict[str, str]] = {}
        for one in (await self.store.behind.list()).resources:
            found.setdefault(set_of(one.annotations), {})[one.ref.name] = _value(one)
        return found

    async def record(self, name: str) -> Any:
        """What is on record about a set."""
        return next(one for one in await self.store.behind.sets() if one.name == name)


def _value(resource: Resource) -> str:
    data: Any = resource.document["data"]
    return base64.b64decode(data["key"]).decode()


def new_world(*names: str) -> SetWorld:
    """A world with a set for each name. It has no kinds: objects are only stored."""
    clock, numbers = VirtualClock(), count()
    store: Any = KillingStore(MemoryStore(clock, lambda: f"uid-{next(numbers)}"))
    engine = EngineContext(store, clock, {})
    sources = [GivenSource(name) for name in names]
    world = SetWorld(engine, store, clock, sources, SetSync([], engine, SyncOptions()))
    world.restart()
    return world
