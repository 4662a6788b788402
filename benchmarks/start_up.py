"""Comparisons: the CPU time of a command from its start to its end, in a process of its own.

The bucket that commands are about is in a local cloud, a process of its own: its CPU time is not measured.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from benchmarks.comparison import Candidate, Comparison
from benchmarks.peer_packages import Peers
from benchmarks.server_process import announce_until_parent_ends, running_server
from setpoint import __version__
from setpoint.cli.entry import help_text
from setpoint.localcloud.server import LocalCloud

SUBJECT: Final = "start-up, a process each"
INTERPRETER: Final = "python -c pass: the interpreter alone"
PACKAGES: Final = "python -c 'import click, orjson, msgspec'"
FROM_INTERPRETER: Final = "start-up, as a multiple of the interpreter"
FROM_PACKAGES: Final = "start-up, as a multiple of the interpreter with click, orjson and msgspec"
GET: Final = "setpoint get, one bucket"
PLAN: Final = "setpoint plan -f, one bucket, nothing to do"
APPLY: Final = "setpoint apply -f, one bucket, nothing to do"
CREATE: Final = "setpoint apply -f, one bucket, which is created"

_SETPOINT: Final = str(Path(sys.executable).with_name("setpoint"))
_COLUMNS: Final = ["KIND", "NAMESPACE", "NAME", "READY", "REASON", "AGE"]
_FILE: Final = "bucket.yaml"
_BUCKET: Final = """\
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata: {{name: {name}, annotations: {{cnrm.cloud.google.com/project-id: acme}}}}
"""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    output: str


def comparisons(peers: Peers) -> Iterator[Comparison]:
    """The help against the commands of others; then all of ours as multiples of what no command can do without."""
    yield Comparison(SUBJECT, "", tuple(_with_peers(peers)), children_cpu)
    with running_server("benchmarks.start_up") as cloud, tempfile.TemporaryDirectory() as folder:
        commands = (*_without_store(), *_of_one_bucket(cloud, Path(folder)))
        yield Comparison(FROM_INTERPRETER, "", (_interpreter(), *commands), children_cpu)
        yield Comparison(FROM_PACKAGES, "", (_packages(), *commands), children_cpu)


def children_cpu() -> int:
    """Nanoseconds of user and system CPU time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def _with_peers(peers: Peers) -> Iterator[Candidate]:
    yield _help()
    yield _interpreter()
    yield _version()
    yield _candidate("setpoint get, nothing declared", (_SETPOINT, "get"), lambda output: output.split() == _COLUMNS)
    for package in peers.commands:
        command = (sys.executable, "-m", package, "--help")
        yield _candidate(f"{package} --help", command, lambda output: "Usage" in output)


def _without_store() -> Iterator[Candidate]:
    yield _help()
    yield _version()
    yield _candidate("setpoint get --help", (_SETPOINT, "get", "--help"), lambda output: "--all-namespaces" in output)
    script = (_SETPOINT, "completion", "bash")
    yield _candidate("setpoint completion bash", script, lambda output: "_SETPOINT_COMPLETE" in output)
    line = {"_SETPOINT_COMPLETE": "bash_complete", "COMP_WORDS": "setpoint ap", "COMP_CWORD": "1"}
    yield _candidate("a completed word", (_SETPOINT,), lambda output: output == "plain,apply\n", line)


def _of_one_bucket(cloud: str, folder: Path) -> Iterator[Candidate]:
    service = {"STORAGE_EMULATOR_HOST": cloud}
    (folder / _FILE).write_text(_BUCKET.format(name="logs"), encoding="utf-8")
    applied = _run_command((_SETPOINT, "apply", "-f", _FILE), folder, service)
    assert applied.code == 0, applied

    def candidate(name: str, *words: str, shows: str) -> Candidate:
        command = (_SETPOINT, *words)
        return Candidate(name, lambda: _run_command(command, folder, service), _checked(lambda out: shows in out))

    yield candidate(GET, "get", shows="UpToDate")
    yield candidate(PLAN, "plan", "-f", _FILE, shows="unchanged")
    yield candidate(APPLY, "apply", "-f", _FILE, shows="unchanged")
    numbers = count()
    yield Candidate(CREATE, lambda: _create(next(numbers), service), _checked(lambda output: "created" in output))


def _create(number: int, service: Mapping[str, str]) -> CommandResult:
    """Applies a bucket that does not exist yet, with a store that does not, either."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / _FILE).write_text(_BUCKET.format(name=f"logs-{number}"), encoding="utf-8")
        return _run_command((_SETPOINT, "apply", "-f", _FILE), Path(folder), service)


def _interpreter() -> Candidate:
    # As a console script starts it: with the site-packages of the environment.
    return _candidate(INTERPRETER, (sys.executable, "-c", "pass"), lambda output: output == "")


def _packages() -> Candidate:
    command = (sys.executable, "-c", "import click, orjson, msgspec")
    return _candidate(PACKAGES, command, lambda output: output == "")


def _help() -> Candidate:
    return _candidate("setpoint --help", (_SETPOINT, "--help"), lambda output: output == help_text())


def _version() -> Candidate:
    return _candidate("setpoint version", (_SETPOINT, "version"), lambda output: __version__ in output)


def _candidate(
    name: str, command: Sequence[str], is_expected: Callable[[str], bool], variables: Mapping[str, str] | None = None
) -> Candidate:
    """A command in an empty folder."""

    def call() -> CommandResult:
        with tempfile.TemporaryDirectory() as folder:
            return _run_command(command, Path(folder), variables or {})

    return Candidate(name, call, _checked(is_expected))


def _checked(is_expected: Callable[[str], bool]) -> Callable[[object], bool]:
    def is_correct(result: object) -> bool:
        assert isinstance(result, CommandResult)
        return result.code == 0 and is_expected(result.output)

    return is_correct


def _run_command(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> CommandResult:
    """Runs a command in a folder, without the SETPOINT_ variables of the caller's environment."""
    inherited = {
        name: text
        for name, text in os.environ.items()
        # Compiled modules are kept, as they are where setpoint is installed.
        if not name.lstrip("_").startswith("SETPOINT_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    completed = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, "SETPOINT_GCP_AUTH": "anonymous", **variables},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return CommandResult(completed.returncode, completed.stdout)


async def _serve() -> None:
    async with LocalCloud() as cloud:
        await announce_until_parent_ends(urlsplit(cloud.url).port or 0)


if __name__ == "__main__":
    asyncio.run(_serve())
