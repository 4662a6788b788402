"""A comparison: the CPU time of a command from its start to its end, in a process of its own."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.comparison import Candidate, Comparison
from benchmarks.peers import Peers
from setpoint import __version__
from setpoint.cli.entry import help_text

SUBJECT: Final = "start-up, a process each"
INTERPRETER: Final = "python -c pass: the interpreter alone"

_SETPOINT: Final = str(Path(sys.executable).with_name("setpoint"))
_EMPTY: Final = ["KIND", "NAMESPACE", "NAME", "READY", "REASON", "AGE"]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    output: str


def comparisons(peers: Peers) -> Iterator[Comparison]:
    """One comparison, without a size."""
    yield Comparison(SUBJECT, "", tuple(_candidates(peers)), children_cpu)


def children_cpu() -> int:
    """Nanoseconds of user and system CPU time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def _candidates(peers: Peers) -> Iterator[Candidate]:
    yield _candidate("setpoint --help", (_SETPOINT, "--help"), lambda output: output == help_text())
    # As a console script starts it: with the site-packages of the environment.
    yield _candidate(INTERPRETER, (sys.executable, "-c", "pass"), lambda output: output == "")
    yield _candidate("setpoint version", (_SETPOINT, "version"), lambda output: __version__ in output)
    yield _candidate("setpoint get, nothing declared", (_SETPOINT, "get"), lambda output: output.split() == _EMPTY)
    for package in peers.commands:
        command = (sys.executable, "-m", package, "--help")
        yield _candidate(f"{package} --help", command, lambda output: "Usage" in output)


def _candidate(name: str, command: Sequence[str], is_expected: Callable[[str], bool]) -> Candidate:
    def is_correct(result: object) -> bool:
        assert isinstance(result, CommandResult)
        return result.code == 0 and is_expected(result.output)

    return Candidate(name, lambda: _run_command(command), is_correct)


def _run_command(command: Sequence[str]) -> CommandResult:
    """Runs a command in an empty folder, without the SETPOINT_ variables of the caller's environment."""
    environment = {name: text for name, text in os.environ.items() if not name.lstrip("_").startswith("SETPOINT_")}
    with tempfile.TemporaryDirectory() as folder:
        completed = subprocess.run(
            command,
            cwd=folder,
            env={**environment, "SETPOINT_GCP_AUTH": "anonymous"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    return CommandResult(completed.returncode, completed.stdout)
