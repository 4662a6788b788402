"""A process that writes as fast as it can and prints what was acknowledged, until it is killed."""

import asyncio
import sys
import uuid
from itertools import count
from pathlib import Path

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import ChildWrite, EventRecord, ResourceUpdate
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.stores.journal import StoreLimits
from setpoint.stores.sqlite.store import SqliteStore, open_sqlite
from tests.engine.clock import FakeClock
from tests.stores.samples import GROUP, instance

LIMITS = StoreLimits(changes=400)
PAIR = ("pair-a", "pair-b")
REFS = {name: ResourceRef(GROUP, "SQLInstance", "default", name) for name in PAIR}


async def count_up(store: SqliteStore, name: str, begin: int) -> None:
    """A number that grows in the spec, in the status and in a Secret."""
    for number in count(begin):
        resource = await store.apply(instance(name, spec={"number": number}, labels={"odd": str(number % 2)}))
        await store.update_status(resource, {"number": number})
        print_acknowledged(name, number)
        password: JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name},
            "stringData": {"n": name},
        }
        await store.apply(password)


async def update_parts(store: SqliteStore, name: str, begin: int) -> None:
    """A number that grows in the status, in an annotation and in an event, all in one update."""
    resource = await store.apply(instance(name, spec={"number": 2**53}))
    for number in count(begin):
        event = EventRecord(resource.ref, resource.uid, "Normal", "Counted", str(number), "2026-01-01T00:00:00Z")
        update = ResourceUpdate(status={"number": number}, annotations={"number": str(number)}, events=[event])
        after = await store.update(resource, update)
        assert after is not None
        resource = after
        print_acknowledged(name, number)


async def write_pairs(store: SqliteStore, begin: int) -> None:
    """A number that grows in two children at once."""
    seen: tuple[Resource | None, ...] = tuple([await store.get(REFS[name]) for name in PAIR])
    for number in count(begin):
        documents = (instance(name, spec={"number": number}) for name in PAIR)
        seen = await store.write_children([ChildWrite(*one) for one in zip(documents, seen, strict=True)])


async def create_and_delete(store: SqliteStore, begin: int) -> None:
    """One resource after the other, each created and deleted once."""
    for number in count(begin):
        name = f"gone-{number}"
        await store.apply(instance(name))
        await store.delete(ResourceRef(GROUP, "SQLInstance", "default", name))
        print_acknowledged(name, 0)


def print_acknowledged(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201 - read by the parent process


async def main(path: Path, begin: int) -> None:
    store = await open_sqlite(path, FakeClock(), lambda: str(uuid.uuid4()), limits=LIMITS)
    counters = (count_up(store, f"db-{number}", begin) for number in range(8))
    updates = (update_parts(store, f"parts-{number}", begin) for number in range(4))
    await asyncio.gather(create_and_delete(store, begin), write_pairs(store, begin), *updates, *counters)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
