"""Contests: how long until a command has answered, in processes of their own."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.measuring import Contest, Contestant
from benchmarks.opponents import Opponents
from setpoint import __version__
from setpoint.cli.entry import help_text

SUBJECT: Final = "start-up, a process each"
INTERPRETER: Final = "python -c pass: the interpreter alone"

_SETPOINT: Final = str(Path(sys.executable).with_name("setpoint"))
_EMPTY: Final = ["KIND", "NAMESPACE", "NAME", "READY", "REASON", "AGE"]


@dataclass(frozen=True, slots=True)
class Answer:
    """How a process ended, and what it had to say."""

    code: int
    output: str


def contests(opponents: Opponents) -> Iterator[Contest]:
    """One contest: what is started is the same for every size."""
    yield Contest(SUBJECT, "", tuple(_contestants(opponents)), children_cpu)


def children_cpu() -> int:
    """Nanoseconds of CPU time, in user space and in the kernel, of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def _contestants(opponents: Opponents) -> Iterator[Contestant]:
    yield _contestant("setpoint --help", (_SETPOINT, "--help"), lambda output: output == help_text())
    # As a console script starts it: with the packages of the environment in sight.
    yield _contestant(INTERPRETER, (sys.executable, "-c", "pass"), lambda output: output == "")
    yield _contestant("setpoint version", (_SETPOINT, "version"), lambda output: __version__ in output)
    yield _contestant("setpoint get, nothing declared", (_SETPOINT, "get"), lambda output: output.split() == _EMPTY)
    for one in opponents.commands:
        command = (sys.executable, "-m", one, "--help")
        yield _contestant(f"{one} --help", command, lambda output: "Usage" in output)


def _contestant(name: str, command: Sequence[str], agrees: Callable[[str], bool]) -> Contestant:
    def is_right(answer: object) -> bool:
        assert isinstance(answer, Answer)
        return answer.code == 0 and agrees(answer.output)

    return Contestant(name, lambda: _answer(command), is_right)


def _answer(command: Sequence[str]) -> Answer:
    """What a command answers in a folder where nothing is, without what the caller's environment would change."""
    kept = {name: text for name, text in os.environ.items() if not name.lstrip("_").startswith("SETPOINT_")}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**kept, "SETPOINT_GCP_AUTH": "anonymous"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    return Answer(done.returncode, done.stdout)
