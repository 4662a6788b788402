"""No wrong manifest of the table creates anything: each is refused with file and line, or means what it says."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from setpoint.app import AppSettings
from setpoint.cli.commands.apply import apply, plan
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from setpoint.core.values.problems import problems_of
from setpoint.errors import UserError
from setpoint.localcloud.server import LocalCloud
from tests.cli.wrong_manifests import ANNOTATION_ROWS, TABLE, WrongAnnotation, examples, rows_of

ROWS = rows_of(TABLE)
T = TypeVar("T")


class Verdict(NamedTuple):
    """The errors of a command; or what it printed, and its exit code."""

    errors: Sequence[str]
    output: str = ""
    code: int = 1


class Judge:
    """Runs commands on one file, with an empty store each, and a local cloud that counts the calls."""

    def __init__(self, folder: Path, cloud: LocalCloud) -> None:
        self.cloud = cloud
        self.warnings: list[str] = []
        self._file = folder / "manifest.yaml"
        self._environment = {
            "SETPOINT_GCP_AUTH": "anonymous",
            "STORAGE_EMULATOR_HOST": cloud.url,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{cloud.url}/",
            "SETPOINT_GOOGLE_ENDPOINT": cloud.url,
        }

    async def run(self, command: Callable[[CommandRequest], Coroutine[Any, Any, int]], text: str) -> Verdict:
        """What comes of `text`."""
        self._file.write_text(text, encoding="utf-8")
        output = io.StringIO()
        settings = AppSettings("memory:", environment=self._environment, warn=self.warnings.append)
        console = SafeConsole(file=output, width=200)
        try:
            code = await command(CommandRequest(settings, console, files=(str(self._file),), wait=False))
        except UserError as error:
            return Verdict([str(one).replace(str(self._file), "manifest.yaml") for one in problems_of(error)])
        return Verdict((), output.getvalue(), code)


@asynccontextmanager
async def judging(folder: Path) -> AsyncIterator[Judge]:
    """A judge with a local cloud of its own."""
    async with LocalCloud() as cloud:
        yield Judge(folder, cloud)


def test_every_example_is_accepted_as_it_is_but_for_the_grant(tmp_path: Path) -> None:
    async def refused() -> list[str]:
        async with judging(tmp_path) as judge:
            return [base for base, text in examples().items() if (await judge.run(plan, text)).errors]

    # A store of one person takes no grants; and three pages show mistakes.
    assert asyncio.run(refused()) == [
        "docs/custom-resources.md 1",
        "docs/how-to/check-manifests.md 1",
        "docs/how-to/release-a-field.md 5",
        "docs/how-to/run-from-git.md 5",
    ]


@pytest.mark.parametrize("command", [plan, apply])
def test_a_wrong_manifest_is_refused_with_file_and_line_before_any_call(
    tmp_path: Path, command: Callable[[CommandRequest], Coroutine[Any, Any, int]]
) -> None:
    async def differences() -> list[object]:
        async with judging(tmp_path) as judge:
            found = [(row, await judge.run(command, row.text)) for row in ROWS if row.refused]
            assert judge.cloud.journal.entries == ()
        return [(row, verdict) for row, verdict in found if list(verdict.errors) != list(row.refused)]

    assert asyncio.run(differences()) == []


def test_a_mutation_that_is_meant_is_planned_as_it_says(tmp_path: Path) -> None:
    async def differences() -> list[object]:
        async with judging(tmp_path) as judge:
            found = [(row, await judge.run(plan, row.text)) for row in ROWS if row.meant]
        return [(row, verdict) for row, verdict in found if verdict.errors or row.meant not in verdict.output]

    assert asyncio.run(differences()) == []


@pytest.mark.parametrize("row", ANNOTATION_ROWS, ids=lambda row: row.new.splitlines()[-1].strip())
def test_a_wrong_annotation_is_refused_or_warned_of_with_file_and_line(tmp_path: Path, row: WrongAnnotation) -> None:
    async def told() -> tuple[Sequence[str], Sequence[str]]:
        async with judging(tmp_path) as judge:
            verdict = await judge.run(plan, examples()[row.base].replace(row.old, row.new, 1))
            return verdict.errors, [
                one.replace(str(tmp_path / "manifest.yaml"), "manifest.yaml") for one in judge.warnings
            ]

    errors, warnings = asyncio.run(told())

    found, none = (errors, warnings) if row.is_refused else (warnings, errors)
    assert [line.partition(": ")[0] for line in found] == [f"manifest.yaml:{row.line}"]
    assert row.words in found[0]
    assert list(none) == []


def test_the_table_covers_every_example() -> None:
    assert len(ROWS) >= 300
    assert len({(row.base, row.old, row.new) for row in ROWS}) == len(ROWS)
    assert all(bool(row.refused) != bool(row.meant) for row in ROWS)
    assert {examples()[row.base] for row in ROWS} == set(examples().values())
