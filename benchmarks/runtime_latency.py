"""Scenarios: the time until a process is ready, and until an edit has reached the service."""

import asyncio
import gc
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import orjson

from benchmarks.buckets import USUAL, InMemoryStorage, Size, body_of, manifest_of, name_of
from benchmarks.comparison import WrongResult
from benchmarks.scenarios import Measurement, Unit, compared
from benchmarks.setpoint_process import SetpointProcess, running_process
from benchmarks.settled_store import in_sync_service
from setpoint.core.decide import Decision
from setpoint.core.values.json_types import JsonObject
from setpoint.stores.sqlite.database_file import connect_to_read, connect_to_write

COLD_START: Final = "cold start: from opening the store with 10,000 buckets until ready"
COLD_CPU: Final = f"{USUAL.label}: CPU time"
EDIT: Final = "an edit, 10,000 buckets at rest"
EDIT_CPU: Final = "CPU time until it is settled: half of all"
BARE_EDIT: Final = "its commits and bodies alone, without a bar: half of all"
DECODED_BODY: Final = "orjson.loads of the bytes of one bucket: half of all"
_STARTS: Final = 3
_DECODINGS: Final = 20
_ROWS: Final = "SELECT r.metadata, b.body, r.status FROM resources r JOIN bodies b ON b.id = r.body"
_TIME_LIMIT_SECONDS: Final = 5.0


def cold_start(path: Path, count: int, size: Size) -> tuple[Measurement, ...]:
    """The CPU time and duration of a start, the best of a few; and what the rows alone take, measured in turns."""
    service, best_cpu, best_wall, best_rows = in_sync_service(count, size), float("inf"), float("inf"), float("inf")
    started_at = time.monotonic()
    for _ in range(_STARTS):
        gc.collect()
        best_rows = min(best_rows, _rows_cpu(path, count))
        gc.collect()
        cpu, wall = time.process_time(), time.monotonic()
        with running_process(path, service) as process:
            process.wait_until_ready()
            best_cpu = min(best_cpu, time.process_time() - cpu)
            best_wall = min(best_wall, time.monotonic() - wall)
            if len(process.manager.index) != count:
                raise WrongResult(f"the process knows of {len(process.manager.index)} buckets, not {count}")
        if time.monotonic() - started_at > _TIME_LIMIT_SECONDS:
            break
    cpu_times = {f"{size.label}: the same rows, read and decoded": best_rows, f"{size.label}: CPU time": best_cpu}
    return (
        *compared(COLD_START, cpu_times, Unit.SECONDS),
        Measurement(COLD_START, f"{size.label}: by the clock", best_wall, Unit.SECONDS),
    )


def _rows_cpu(path: Path, count: int) -> float:
    """The yardstick of a start: the CPU time to read all rows of the store and decode their parts, one by one."""
    cpu, decoded = time.process_time(), 0
    connection = connect_to_read(path)
    try:
        for parts in connection.execute(_ROWS):
            decoded += len([orjson.loads(part) for part in parts]) == len(parts)
    finally:
        connection.close()
    if decoded != count:
        raise WrongResult(f"the store has {decoded} rows, not {count}")
    return time.process_time() - cpu


class WriteTimes:
    """The time of the first write of each bucket to the service."""

    def __init__(self) -> None:
        self.by_name: dict[str, float] = {}
        self.first_write = asyncio.Event()

    def record(self, name: str) -> None:
        """Records a write now."""
        self.by_name.setdefault(name, time.monotonic())
        self.first_write.set()


def edit_latency(
    process: SetpointProcess,
    service: InMemoryStorage,
    numbers: Sequence[int],
    *,
    size: Size,
    write_times: WriteTimes,
) -> tuple[Measurement, ...]:
    """The latency and CPU time of edits, made one after the other, each until it is settled; and of bare commits.

    Without the CPU time of `service`, which is that of another process elsewhere.
    """
    latencies, cpu, bare, decoded, before = [], [], [], [], Counter(process.decisions())
    with TemporaryDirectory() as folder, _BareEdit.opened(Path(folder) / "bare.db", process.loop) as yardstick:
        for number in numbers:
            edited = manifest_of(number, size, versioning=False)
            cpu_before, started_at = time.process_time() - service.cpu_seconds, time.monotonic()
            process.loop.run_until_complete(_edit(process, edited, write_times))
            cpu.append(time.process_time() - service.cpu_seconds - cpu_before)
            latencies.append(write_times.by_name[name_of(number)] - started_at)
            body = body_of(name_of(number), size)
            bare.append(yardstick.cpu(name_of(number), edited, body))
            decoded.append(_decoding_cpu(body))
    times = {DECODED_BODY: decoded, BARE_EDIT: bare, EDIT_CPU: cpu}
    decisions = Counter(process.decisions()) - before
    if decisions != {Decision.INTENT_CHANGED.value: len(numbers)}:
        raise WrongResult(f"{len(numbers)} edits, decided as {dict(decisions)}")
    return (
        Measurement(
            EDIT, "until its first write reaches the service: half of all", _quantile(latencies, 0.5), Unit.SECONDS
        ),
        Measurement(EDIT, "99 of 100", _quantile(latencies, 0.99), Unit.SECONDS),
        *compared(EDIT, {name: _quantile(found, 0.5) for name, found in times.items()}, Unit.SECONDS),
    )


def _decoding_cpu(body: bytes) -> float:
    """The CPU time to decode a body: so often that its time can be told, in turns with the edits."""
    started = time.process_time()
    for _ in range(_DECODINGS):
        orjson.loads(body)
    return (time.process_time() - started) / _DECODINGS


class _BareEdit:
    """Another yardstick of an edit: what any program has to do for it that does not block its event loop.

    The manifest is decoded and committed, its patch encoded, the answers to the patch and to a GET decoded, and the
    status committed: two transactions with the store's settings, in a thread.
    """

    def __init__(self, connection: sqlite3.Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop
        self._thread = ThreadPoolExecutor(1)
        connection.execute("CREATE TABLE resources (name TEXT PRIMARY KEY, body BLOB, status BLOB)")
        connection.execute("CREATE TABLE journal (revision INTEGER PRIMARY KEY, body BLOB, status BLOB)")

    @staticmethod
    @contextmanager
    def opened(path: Path, loop: asyncio.AbstractEventLoop) -> Iterator["_BareEdit"]:
        path.touch()
        with closing(connect_to_write(path)) as connection:
            bare = _BareEdit(connection, loop)
            with bare._thread:
                yield bare

    def cpu(self, name: str, manifest: JsonObject, answer: bytes) -> float:
        """The CPU time of one edit."""
        body, started = orjson.dumps(manifest), time.process_time()
        self._loop.run_until_complete(self._edit(name, body, answer))
        return time.process_time() - started

    async def _edit(self, name: str, body: bytes, answer: bytes) -> None:
        commit, status = self._loop.run_in_executor, body[: len(body) // 4]
        spec = orjson.loads(body)["spec"]
        await commit(self._thread, self._commit, name, body, b"{}")
        orjson.dumps(spec)
        await asyncio.sleep(0)
        orjson.loads(answer)
        await asyncio.sleep(0)
        orjson.loads(answer)
        await commit(self._thread, self._commit, name, body, status)

    def _commit(self, name: str, body: bytes, status: bytes) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        execute("INSERT OR REPLACE INTO resources VALUES (?, ?, ?)", (name, body, status))
        execute("INSERT INTO journal (body, status) VALUES (?, ?)", (body, status))
        execute("COMMIT")


async def _edit(process: SetpointProcess, manifest: JsonObject, write_times: WriteTimes) -> None:
    write_times.first_write.clear()
    await process.store.apply(manifest)
    await write_times.first_write.wait()
    await process.controller.queue.drained()


def _quantile(values: Sequence[float], share: float) -> float:
    """The quantile of `values` at `share`, between 0 and 1."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
