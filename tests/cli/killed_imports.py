"""`python -m tests.cli.killed_imports FOLDER`: manifests are written in a process that is killed before each call.

Prints a line for each kill: what the files are then, and what they are after a second run.
"""

import sys
from pathlib import Path
from typing import Final

from setpoint.cli.commands.authoring.import_live import write_files
from tests.stores.killed_backups import run_killed

_OLD: Final = "kind: Old\n" * 1000
# More than a buffer, so that a file is written by several calls.
FILES: Final = {f"{name}.yaml": f"kind: {name}\n" * 100_000 for name in ("a", "b", "c")}


def _state(folder: Path) -> str:
    """Of each manifest in a folder: whether it is new, old, or neither; nothing of one that is not there."""
    words = {FILES[name]: "new" for name in FILES} | {_OLD: "old"}
    found = sorted(folder.glob("*.yaml"))
    return " ".join(f"{one.stem}={words.get(one.read_text(), 'TORN')}" for one in found)


def _killed(folder: Path, calls: int) -> tuple[bool, str]:
    folder.mkdir()
    (folder / "b.yaml").write_text(_OLD)
    killed = run_killed(lambda: write_files(folder, FILES, force=True), calls)
    after = _state(folder)
    write_files(folder, FILES, force=True)
    return killed, f"{after} then {_state(folder)}"


def main() -> None:
    """Kills before the first call, the second, and so on, until one run ends by itself."""
    calls, killed = 0, True
    while killed:
        killed, line = _killed(Path(sys.argv[1]) / str(calls), calls)
        sys.stdout.write(f"{'killed' if killed else 'ended'} {line}\n")
        calls += 1


if __name__ == "__main__":
    main()
