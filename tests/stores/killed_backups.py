"""`python -m tests.stores.killed_backups VERB FOLDER`: the verb in a process that is killed before each system call.

Prints a line for each kill: what the store holds then, and whether what was replaced is whole.
"""

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from setpoint.core.secret_fields import NO_TYPES
from setpoint.errors import SetpointError
from setpoint.stores.sqlite.backup import checked_record, write_backup
from setpoint.stores.sqlite.restore import restore_backup
from tests.stores.audit import audit

NOW: Final = "2026-01-02T00:00:00Z"
# Calls that change or open a file; the others cannot leave anything behind.
_CALLS: Final = ("open", "os.", "sqlite3.", "shutil.", "fcntl.")


def run_killed(verb: Callable[[], object], calls: int) -> bool:
    """Runs the verb in a fork that ends before so many calls; whether it was killed."""
    child = os.fork()
    if child == 0:
        left = calls

        def count(event: str, _: Any) -> None:
            nonlocal left
            if event.startswith(_CALLS) and event != "os.kill":
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            verb()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def names_in(store: Path) -> str:
    """The names of the resources in a file."""
    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as connection:
        return ",".join(name for (name,) in connection.execute("SELECT name FROM resources ORDER BY name"))


def after_restore(world: Path, folder: Path, calls: int) -> tuple[bool, str]:
    """Whether it was killed, and what is there then: the store, and whatever is kept beside it."""
    shutil.copytree(world, folder)
    store = folder / "state.db"
    killed = run_killed(lambda: restore_backup(folder / "kept.db", store, NOW, NO_TYPES), calls)
    found = names_in(store)
    wrong = audit(store)
    kept = sorted({names_in(one) for one in folder.glob("state.db.replaced-*") if one.suffix not in (".key", ".lock")})
    # Whatever was left behind is no hindrance.
    restore_backup(folder / "kept.db", store, NOW, NO_TYPES)
    return killed, f"store {found} wrong {wrong} kept {kept} then {names_in(store)}"


def after_backup(world: Path, folder: Path, calls: int) -> tuple[bool, str]:
    """The same of a backup that replaces another one."""
    shutil.copytree(world, folder)
    store, to = folder / "state.db", folder / "kept.db"
    killed = run_killed(lambda: write_backup(store, to, NOW, replaces=True), calls)
    try:
        found = f"{checked_record(to, to).made_at} {names_in(to)}"
    except SetpointError as error:
        found = str(error)
    return killed, f"backup {found} store {names_in(store)}"


def main() -> None:
    """Kills before the first call, the second, and so on, until one run ends by itself."""
    verb = {"restore": after_restore, "backup": after_backup}[sys.argv[1]]
    folder = Path(sys.argv[2])
    calls, killed = 0, True
    while killed:
        killed, line = verb(folder / "world", folder / f"after-{calls}", calls)
        sys.stdout.write(f"{'killed' if killed else 'ended'} {line}\n")
        calls += 1


if __name__ == "__main__":
    main()
