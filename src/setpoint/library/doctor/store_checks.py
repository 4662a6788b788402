"""Checks of the store, of the disk below it, and of versions."""

import asyncio
import platform
import shutil
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from setpoint import __version__
from setpoint.app import AppSettings, all_plugins, is_shared_store, store_file
from setpoint.app.store_backup import StoreHealth, store_health
from setpoint.errors import SetpointError
from setpoint.library.doctor.findings import Finding, counted, failure, ok, warning

T = TypeVar("T")

_MIB: Final = 2**20
# A log is emptied every few megabytes, unless a reader prevents it.
_LARGE_LOG: Final = 64 * _MIB
_LITTLE_SPACE: Final = 512 * _MIB
_NO_SPACE: Final = 16 * _MIB


async def in_thread(work: Callable[[], T]) -> T:
    """The result of a call that blocks; the process does not wait for a thread that hangs."""
    loop, done = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result: T | None = None
        failed: BaseException | None = None
        try:
            result = work()
        except (SetpointError, OSError) as error:
            failed = error
        try:
            loop.call_soon_threadsafe(settle, result, failed)
        except RuntimeError:
            # The loop is closed: the caller has gone on without it.
            return

    threading.Thread(target=run, daemon=True).start()
    found: T = await done
    return found


async def check_store(settings: AppSettings, seconds: float) -> Sequence[Finding]:
    """Whether the file is whole, of which version it is, and who holds it."""
    path = store_file(settings)
    if path is None:
        kind = "in a cluster" if is_shared_store(settings) else "in memory"
        return [ok(f"the store is {kind}", settings.store)]
    if not path.exists():
        return [ok("there is no store yet: the first apply makes one", str(path))]
    health = await in_thread(lambda: store_health(path, seconds))
    return _store_findings(health, path)


def _store_findings(health: StoreHealth, path: Path) -> Sequence[Finding]:
    where = str(path)
    if health.damage:
        what, _, advice = health.damage.rpartition(": ")
        return [failure(what, where, f"{advice}; `setpoint restore FILE` takes a backup")]
    found = [ok(f"whole, {counted(health.resources, 'resource')}, {health.size / _MIB:.1f} MiB", where)]
    if health.version < health.newest_version:
        text = f"of version {health.version}, and this setpoint writes {health.newest_version}"
        found.append(warning(text, where, "any command that writes brings it up to date"))
    if health.holder is not None:
        found.append(ok(f"in use by process {health.holder}", where))
    if health.log_size > _LARGE_LOG:
        text = f"its log has {health.log_size / _MIB:.0f} MiB, as a reader keeps it from being emptied"
        found.append(warning(text, f"{where}-wal", "end what reads it for long, such as get --watch"))
    if health.exposed:
        what, _, advice = health.exposed.rpartition(": ")
        found.append(warning(what, where, advice))
    return found


async def check_disk(settings: AppSettings, seconds: float) -> Sequence[Finding]:
    """Whether the store can grow."""
    path = store_file(settings)
    if path is None:
        return [ok("nothing is kept on this machine's disk")]
    folder = next(one for one in path.parents if one.is_dir())
    free, needed = shutil.disk_usage(folder).free, path.stat().st_size if path.exists() else 0
    text = f"{free / _MIB:,.0f} MiB free"
    if free < _NO_SPACE:
        return [failure(text, str(folder), "make room: a store that cannot grow records nothing, and stops every step")]
    # A migration and a backup write the whole of it once more.
    if free < max(_LITTLE_SPACE, 2 * needed):
        return [warning(text, str(folder), "make room before an upgrade: it may write the store once more")]
    return [ok(text, str(folder))]


async def check_versions(settings: AppSettings, seconds: float) -> Sequence[Finding]:
    """What runs here: setpoint, Python, SQLite and plug-ins."""
    plugins = all_plugins()
    found = [
        ok(f"setpoint {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"),
        *(ok(f"plug-in {one}") for one in sorted({str(it.distribution) for it in plugins.offered.values()})),
    ]
    for name, some in plugins.clashes.items():
        offered = " and ".join(sorted(str(one.distribution) for one in some))
        found.append(failure(f"{name[1]} is offered by {offered}", "", "uninstall all but one of them"))
    found += [
        warning(f"{one.entry}: {one.why}", str(one.distribution), "install a version that fits")
        for one in plugins.refused
    ]
    return found
