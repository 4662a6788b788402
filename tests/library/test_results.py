"""What a session returns: the documents of the commands, short texts, HTML without surprises, no truth value."""

import asyncio
import dataclasses
import io
import json
from collections.abc import Awaitable, Callable, Coroutine
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import setpoint
from setpoint import DeclaredResource, ResourceRef, ResourceResult, ResultOutcome
from setpoint.app import AppSettings
from setpoint.cli.commands.apply import apply, plan, reconcile
from setpoint.cli.commands.delete import delete
from setpoint.cli.commands.inspect import get
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from setpoint.engine.resource import Resource, Revision
from setpoint.library.command_document import ChangeData, CommandDocument, ResultData
from setpoint.library.declared import SessionValue
from setpoint.library.results import CommandResult
from tests.laws.json_values import text
from tests.library.worlds import World, bucket, database, world

LOGS = ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", "default", "logs")
HOSTILE = '<img src=x onerror="alert(1)">&\u202e'


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


# --- The same as the commands print -----------------------------------------------------------------------------------


async def printed(command: Callable[[CommandRequest], Awaitable[int]], here: World, **options: Any) -> Any:
    """What a command prints with `-o json`."""
    output = io.StringIO()
    settings = AppSettings(here.store, environment=here.environment)
    request = CommandRequest(settings, SafeConsole(file=output, width=200), output="json", **options)
    await command(request)
    return json.loads(output.getvalue())


async def by_commands(folder: Path) -> list[Any]:
    """The documents of one command after the other."""
    folder.mkdir()
    file = folder / "manifest.yaml"
    file.write_text(yaml.safe_dump_all([bucket(), database("app", "main")]), encoding="utf-8")
    files = {"files": (str(file),)}
    async with world(folder) as here:
        found = [await printed(plan, here, **files), await printed(apply, here, **files)]
        here.drift()
        found += [await printed(plan, here, targets=("StorageBucket/logs",))]
        found += [await printed(reconcile, here), await printed(get, here, show_secrets=False)]
        return [*found, await printed(delete, here, targets=("StorageBucket/logs", "StorageBucket/none"))]


async def by_session(folder: Path) -> list[Any]:
    """The same by a session."""
    folder.mkdir()
    manifests = [bucket(), database("app", "main")]
    async with world(folder) as here, here.open() as session:
        found: list[SessionValue] = [await session.plan(manifests), await session.apply(manifests)]
        here.drift()
        found += [await session.plan("StorageBucket/logs"), await session.reconcile(), await session.list()]
        found += [await session.delete("StorageBucket/logs", "StorageBucket/none")]
        return [json.loads(one.to_json()) for one in found]


def without_chance(value: Any) -> Any:
    """The document without ids and times: resources are reconciled at the same time, in any order."""
    if isinstance(value, list):
        return list(map(without_chance, value))
    if isinstance(value, dict):
        random = (
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "lastTransitionTime",
            "effectiveTime",
            "at",
            "setpoint",
        )
        return {name: without_chance(one) for name, one in value.items() if name not in random}
    return value


def test_results_are_the_documents_of_the_commands(tmp_path: Path) -> None:
    async def main() -> None:
        commands, session = await by_commands(tmp_path / "commands"), await by_session(tmp_path / "session")

        assert [one.get("command", "get") for one in commands] == [
            *("plan", "apply", "plan", "reconcile", "get", "delete"),
        ]
        assert without_chance(session) == without_chance(commands)

    run(main())


def test_a_document_is_that_of_the_schema() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            result = await session.apply(bucket())

            decoded = msgspec.convert(result.to_data(), CommandDocument)
            assert (decoded.command, decoded.results[0].outcome) == ("apply", ResultOutcome.CREATED)
            assert result[0].to_data() == json.loads(result.to_json())["results"][0]

    run(main())


# --- Values -----------------------------------------------------------------------------------------------------------


def result_with(**members: Any) -> ResourceResult:
    """A result."""
    source = ResultData(**LOGS._asdict(), outcome=ResultOutcome.CREATED)
    return ResourceResult(**{"ref": LOGS, "outcome": ResultOutcome.CREATED, "source": source, **members})


def command_result(*results: ResourceResult) -> CommandResult:
    """The results of a command."""
    return CommandResult(results, CommandDocument(command="apply", results=[], summary={"created": 1}, exit_code=0))


VALUES = [
    (result_with(message="x" * 200 + "\nmore"), "<StorageBucket default/logs created: " + "x" * 79 + "…>"),
    (command_result(result_with()), "<apply: created 1>"),
    (DeclaredResource(Resource(bucket())), "<StorageBucket logs: no step yet>"),
    (setpoint.ResourceListing((), Revision("7")), "<0 resources at revision 7>"),
]


@pytest.mark.parametrize(("value", "shown"), VALUES, ids=[type(value).__name__ for value, _ in VALUES])
def test_a_value_has_a_short_text_and_no_truth_value(value: SessionValue, shown: str) -> None:
    assert repr(value) == shown
    with pytest.raises(TypeError, match="is neither true nor false"):
        bool(value)


@pytest.mark.parametrize("value", [value for value, _ in VALUES], ids=lambda value: type(value).__name__)
def test_a_value_cannot_be_changed(value: Any) -> None:
    for one in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, one.name, None)


def test_a_result_is_found_by_position_ref_and_name() -> None:
    found = command_result(result_with())

    assert found[0] is found[LOGS] is found["StorageBucket/logs"] is next(iter(found))
    with pytest.raises(KeyError):
        _ = found["StorageBucket/other"]


# --- HTML -------------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Tags:
    """What a notebook makes of it."""
    tags = Tags()
    tags.feed(html)
    tags.close()
    return tags


def html_of(hostile: str) -> str:
    """The HTML of values in which every text is `hostile`."""
    change = ChangeData(path=hostile, rule=hostile, before=hostile, after={hostile: hostile})
    result = result_with(ref=LOGS._replace(name=hostile), message=hostile, changes=(change,))
    condition = {"type": "Ready", "status": hostile, "reason": hostile, "message": hostile}
    declared = DeclaredResource(Resource({**bucket(hostile), "status": {"conditions": [condition]}}))
    return command_result(result)._repr_html_() + result._repr_html_() + declared._repr_html_()


@given(st.sampled_from((HOSTILE, "</td><script>", "'\"`", "\x00\x1b[2J")) | text)
def test_no_text_becomes_an_element_of_the_page(hostile: str) -> None:
    found = parsed(html_of(hostile))

    assert [tag for tag, _ in found.found] == [tag for tag, _ in parsed(html_of("x")).found]
    assert {name for _, attributes in found.found for name, _ in attributes} == {"style"}


def test_the_table_shows_the_text_itself_and_names_invisible_characters() -> None:
    assert '<img src=x onerror="alert(1)">&\\u202e' in parsed(html_of(HOSTILE)).text


def test_a_plan_shows_no_secret_in_a_notebook() -> None:
    instance = {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLInstance",
        "metadata": {"name": "main", "annotations": {"cnrm.cloud.google.com/project-id": "some-project"}},
        "spec": {
            "region": "europe-west1",
            "databaseVersion": "POSTGRES_16",
            "rootPassword": {"value": "Sesame-1-root"},
            "settings": {"tier": "db-custom-1-3840"},
        },
    }

    async def main() -> None:
        async with world() as here, here.open() as session:
            result = await session.plan(instance)

            assert result[0].outcome is ResultOutcome.CREATE
            assert "Sesame" not in result._repr_html_() + repr(result) + result.to_json() + repr(result[0].plan)

    run(main())
