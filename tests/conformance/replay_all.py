"""Replays every recording as it is, then those with a flaw corrected: `python -m tests.conformance.replay_all`.

The recordings, and the program that replays them, are beside the project, in `../shared/conformance`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from tests.conformance.flawed_recordings import FLAWED, write_corrected
from tests.forking.processes import SETPOINT, can_fork, write_launcher

RECORDINGS: Final = Path(__file__).resolve().parents[3] / "shared" / "conformance"
_PASSED: Final = "ok"


def replayed(*fixtures: Path, setpoint: Path, seconds: int = 300) -> list[str]:
    """The report of the replay of these fixtures; one that takes longer than so many seconds fails."""
    command = [
        sys.executable,
        str(RECORDINGS / "replay.py"),
        *map(str, fixtures),
        "-j",
        "8",
        "--timeout",
        str(seconds),
        "--setpoint",
        str(setpoint),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def launcher(folder: Path) -> Path:
    """The program to replay: one that is forked from a process that has it loaded, where processes can be forked."""
    if not can_fork():
        return Path(SETPOINT)
    program = folder / "setpoint"
    write_launcher(program, SETPOINT)
    return program


def main() -> int:
    """Prints both sums, and each failure with the flaw of its recording; 1 when one fails that has no flaw."""
    recordings = sorted(path for path in RECORDINGS.glob("*/*") if (path / "http.log").is_file())
    if not recordings:
        raise click.ClickException(f"there are no recordings in {RECORDINGS}")
    with tempfile.TemporaryDirectory() as folder:
        program = launcher(Path(folder))
        flawed = [path for path in recordings if path.name in FLAWED]
        as_recorded = replayed(*recordings, setpoint=program, seconds=120)
        corrected = replayed(*(write_corrected(path, Path(folder)) for path in flawed), setpoint=program)
    wrong = _print_failures(as_recorded)
    click.echo(f"as recorded: {as_recorded[-1]}")
    wrong += [line for line in corrected[:-1] if not line.startswith(_PASSED)]
    click.echo("".join(f"{line}\n" for line in wrong), nl=False)
    click.echo(f"the flawed ones, corrected: {corrected[-1]}")
    return 1 if wrong else 0


def _print_failures(report: list[str]) -> list[str]:
    """Prints what failed and has a flaw, with its reason; returns what failed without one."""
    wrong, is_told = list[str](), False
    for line in report[:-1]:
        word, _, rest = line.partition(" ")
        if word == "FAIL":
            name = rest.split()[0]
            is_told = name in FLAWED
            click.echo(f"FAIL {name}: {FLAWED[name].reason}" if is_told else line)
        if not is_told and not line.startswith(_PASSED):
            wrong.append(line)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
