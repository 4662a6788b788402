"""After kill -9 or a cancellation at any point, acknowledged writes are there and the store is consistent."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from setpoint.engine.ports import ResourceQuery
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.stores.sqlite.store import OpenMode, SqliteStore, open_sqlite
from tests.engine.clock import FakeClock
from tests.stores.audit import NOTHING_WRONG, audit
from tests.stores.child_writer import PAIR
from tests.stores.samples import instance
from tests.stores.scratch import scratch_folder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_acknowledged_writes_survive_kill_9(
    tmp_path: Path, loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str]
) -> None:
    path = tmp_path / "state.db"
    random = Random(9)
    for attempt in range(10):
        acknowledged = killed_after(random.randint(1, 300), path, begin=attempt * 100_000)
        store = loop.run(open_sqlite(path, clock, new_uid, OpenMode.READ))
        kept = loop.run(store.list(ResourceQuery(kind="SQLInstance"))).resources
        events = {(event.ref, event.message) for event in loop.run(store.events())}
        loop.run(store.close())

        assert lost(acknowledged, kept) == []
        assert partial_writes(kept, events) == []
        assert audit(path) == NOTHING_WRONG


def killed_after(lines: int, path: Path, begin: int) -> dict[str, int]:
    """What a process acknowledged before it was killed: the last number of each name."""
    command = [sys.executable, "-m", "tests.stores.child_writer", str(path), str(begin)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines_ = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        lines_ += child.stdout.readlines()
    # The kill may have cut off the last line.
    pairs = [line.split() for line in lines_ if line.endswith("\n")]
    return {name: int(number) for name, number in pairs}


def lost(acknowledged: dict[str, int], kept: tuple[Resource, ...]) -> list[str]:
    """The names that are behind what was acknowledged: deleted and still there, or an older number."""
    found = {resource.ref.name: resource for resource in kept}
    return [
        name
        for name, number in acknowledged.items()
        if (name in found if name.startswith("gone-") else name not in found or reached(found[name]) < number)
    ]


def partial_writes(kept: tuple[Resource, ...], events: set[tuple[ResourceRef, str]]) -> list[str]:
    """The names of which only a part was written: of an update, or of two children."""
    updated = [one for one in kept if one.ref.name.startswith("parts-") and one.status]
    pair = {str(one.spec["number"]) for one in kept if one.ref.name in PAIR}
    return [
        *(one.ref.name for one in updated if one.annotations.get("number") != str(one.status["number"])),
        *(one.ref.name for one in updated if (one.ref, str(one.status["number"])) not in events),
        *(PAIR if len(pair) > 1 else ()),
    ]


def reached(resource: Resource) -> int:
    """The number that is in the spec and in the status; a status may be one behind its spec."""
    numbers = [resource.spec["number"], resource.status.get("number", 0)]
    return min(number for number in numbers if isinstance(number, int))


@pytest.mark.parametrize("seed", range(8))
def test_a_cancelled_write_happens_wholly_or_not_at_all(
    loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str], seed: int
) -> None:
    with scratch_folder() as folder:
        store = loop.run(open_sqlite(folder / "state.db", clock, new_uid))
        answered = loop.run(writes_with_cancellations(store, Random(seed)))
        kept = loop.run(store.list()).resources
        loop.run(store.close())

        assert lost(answered, kept) == []
        assert audit(folder / "state.db") == NOTHING_WRONG


async def writes_with_cancellations(store: SqliteStore, random: Random) -> dict[str, int]:
    """The last number of each name that was answered, while every now and then a writer is cancelled."""
    answered: dict[str, int] = {}

    async def count_up(name: str) -> None:
        for number in range(answered.get(name, 0), answered.get(name, 0) + 20):
            resource = await store.apply(instance(name, spec={"number": number}))
            await store.update_status(resource, {"number": number})
            answered[name] = number

    tasks: dict[str, asyncio.Task[None]] = {}
    for turn in range(300):
        name = f"db-{random.randint(1, 12)}"
        if name not in tasks or tasks[name].done():
            tasks[name] = asyncio.create_task(count_up(name))
        if turn % 3 == 0:
            tasks[random.choice(list(tasks))].cancel()
        for _ in range(random.randint(0, 5)):
            await asyncio.sleep(0)
    await asyncio.wait(tasks.values())
    for task in tasks.values():
        assert task.cancelled() or task.exception() is None
    return answered
