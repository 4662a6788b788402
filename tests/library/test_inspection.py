"""What a session shows without changing anything: descriptions, explanations, events, the graph, all plans."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint import (
    EventListing,
    EventRecord,
    ExitCode,
    Inspection,
    ResourceDescription,
    ResourceGraph,
    ResourceRef,
    Session,
    StepExplanation,
)
from setpoint.app import AppSettings
from setpoint.cli.commands import graph as graph_command
from setpoint.cli.commands import plan_all as plan_all_command
from setpoint.cli.commands.inspect import describe, events, explain
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from setpoint.core.values.json_types import Json
from setpoint.engine.dependency_graph import EdgeType, GraphEdge, GraphNode, NodeState
from setpoint.engine.resource import Resource, Revision
from setpoint.engine.step.preview import PreviewFinding
from setpoint.errors import ManifestInvalid
from setpoint.library.declared import DeclaredResource, SessionValue
from tests.laws.json_values import text
from tests.library.worlds import World, bucket, database, until, world

LOGS: Final = ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", "default", "logs")
APP: Final = ResourceRef("sql.cnrm.cloud.google.com", "SQLDatabase", "default", "app")
MAIN: Final = ResourceRef("sql.cnrm.cloud.google.com", "SQLInstance", "default", "main")


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


# --- The same as the commands print -----------------------------------------------------------------------------------


async def printed(command: Callable[[CommandRequest], Awaitable[int]], here: World, **options: Any) -> Any:
    """What a command prints with `-o json`."""
    output = io.StringIO()
    settings = AppSettings(here.store, environment=here.environment)
    await command(CommandRequest(settings, SafeConsole(file=output, width=200), output="json", **options))
    return json.loads(output.getvalue())


async def plan_all(request: CommandRequest) -> int:
    return await plan_all_command._plan(request, None, {})


def test_a_session_reads_what_the_commands_print(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as here, here.open() as session:
            await session.apply(bucket(), database("app", "main"))
            await session.apply(bucket(storageClass="NEARLINE"))
            ours: dict[str, SessionValue] = {
                "describe": await session.describe(),
                "explain": await session.explain(),
                "events": await session.events(),
                "graph": await session.graph(),
                "plan_all": await session.plan_all(),
            }
            commands = {
                "describe": await printed(describe, here),
                "explain": await printed(explain, here),
                "events": await printed(events, here),
                "graph": await printed(graph_command._graph, here),
                "plan_all": await printed(plan_all, here),
            }

            assert {name: json.loads(one.to_json()) for name, one in ours.items()} == commands
            assert len(commands["describe"]) == 2
            assert commands["explain"][1]["moved"] == ["intent", "live"]

    run(main())


# --- Descriptions and explanations ------------------------------------------------------------------------------------


def test_a_description_has_the_resource_and_its_own_events() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket(), bucket("images"))

            found = (await session.describe(LOGS))["StorageBucket/logs"]
            assert (found.ref, found.resource.is_ready) == (LOGS, True)
            assert {one.ref for one in found.events} == {LOGS}
            with pytest.raises(ManifestInvalid, match="StorageBucket default/none is not declared here"):
                await session.describe("StorageBucket/none")

    run(main())


def test_an_explanation_says_which_digest_moved_and_when_the_next_step_is() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            await session.apply(bucket(storageClass="NEARLINE"))

            found = (await session.explain())[LOGS]
            assert (found.trigger, found.decision, found.moved) == (
                *("setpoint apply", "intent changed", ("intent", "live")),
            )
            assert found.next_step == "with the next `setpoint apply` or `setpoint reconcile`"
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                group.create_task(session.run(stop=stop))
                await until(lambda: session.is_running)
                assert (await session.explain(LOGS))[0].next_step.startswith("by the running process")
                stop.set()

    run(main())


def test_a_description_shows_secret_values_only_where_that_is_asked_for() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"password": "Sesame-1"}}

    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(secret)
            shown = [await session.describe("Secret/db", show_secrets=one) for one in (False, True)]

            assert ["U2VzYW1lLTE=" in one.to_json() for one in shown] == [False, True]

    run(main())


# --- Events -----------------------------------------------------------------------------------------------------------


def test_a_watch_of_events_shows_each_event_once_and_misses_none() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            before = await session.events()
            await session.apply(bucket("images"))
            async with aclosing(session.watch_events("StorageBucket/images", since=before)) as watch:
                found = await anext(watch)
                after = await session.events("StorageBucket/images")
                assert {one.ref.name for one in before} == {"logs"}
                assert {*found} == {*after}
                await session.delete("StorageBucket/logs")
                drifting = asyncio.ensure_future(anext(watch))
                here.drift("images")
                await session.reconcile("StorageBucket/images")
                new = await drifting
                assert {*new}.isdisjoint(found)
                assert {one.ref.name for one in new} == {"images"}

    run(main())


def test_a_watch_of_events_ends_with_its_session() -> None:
    async def main() -> None:
        async with world() as here:
            session = here.open()
            await session.apply(bucket())
            watching = asyncio.ensure_future(anext(session.watch_events(since=await session.events()), None))
            await asyncio.sleep(0)
            await session.close()

            assert await watching is None

    run(main())


# --- The graph --------------------------------------------------------------------------------------------------------


def test_the_graph_has_what_a_resource_needs_and_its_state() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket(), database("app", "main"), wait=False)
            whole, part, one = await session.graph(), await session.graph("StorageBucket"), await session.graph(APP)

            assert {node.ref: node.state for node in whole.nodes} == {
                LOGS: NodeState.READY,
                APP: NodeState.BLOCKED,
                MAIN: NodeState.MISSING,
            }
            assert [edge.needed for edge in whole.needed_by(APP)] == [MAIN]
            assert [edge.dependant for edge in whole.dependants_of(MAIN)] == [APP]
            assert [node.ref for node in part.nodes] == [LOGS]
            assert {node.ref for node in one.nodes} == {APP, MAIN}

    run(main())


def test_the_graph_of_manifests_is_as_if_they_were_declared() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            graph = await session.graph([bucket(), database("app", "main")])

            assert {node.ref.name: node.state.value for node in graph.nodes} == {
                **{"logs": "not looked at", "app": "not looked at", "main": "missing"},
            }
            assert len(await session.list()) == 0
            with pytest.raises(ManifestInvalid, match="a graph is of manifests or of what is declared"):
                await session.graph(bucket(), "SQLInstance")

    run(main())


# --- All plans --------------------------------------------------------------------------------------------------------


def requests_of(here: World) -> list[str]:
    """The paths that were asked for, each as often as it was."""
    return sorted(one.path.partition("?")[0] for one in here.cloud.journal.entries)


@pytest.mark.parametrize("in_memory", [True, False])
def test_objects_that_are_as_they_were_are_observed_by_one_list(tmp_path: Path, *, in_memory: bool) -> None:
    async def main() -> None:
        async with world(None if in_memory else tmp_path) as here, here.open() as session:
            await session.apply([bucket(f"logs-{number}") for number in range(12)])
            here.drift("logs-3")
            here.cloud.journal.clear()
            found = await session.plan_all()

            assert found.summary == {"in sync": 11, "writes": 1}
            assert (found["StorageBucket/logs-3"].finding, found.exit_code) == (PreviewFinding.WRITES, ExitCode.CHANGES)
            assert requests_of(here) == ["/storage/v1/b", "/storage/v1/b/logs-3"]

    run(main())


def test_a_recorded_world_is_planned_without_a_service(tmp_path: Path) -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply([bucket(f"logs-{number}") for number in range(12)])
            recording = await session.record()
            (tmp_path / "world").write_bytes(recording.world)
            here.cloud.journal.clear()
            replayed, live = await session.plan_all(world=tmp_path / "world"), await session.plan_all()

            assert (recording.resources, replayed.is_done, replayed.report.missed) == (12, True, ())
            assert replayed.to_json() == live.to_json()
            assert requests_of(here) == ["/storage/v1/b"]

    run(main())


def test_a_plan_of_all_leaves_the_tasks_beside_it_alone() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, here.open() as other:
            await session.apply(bucket())
            planned, applied = await asyncio.gather(session.plan_all(), other.apply(bucket("images")))

            assert (planned.is_done, applied.is_done) == (True, True)

    run(main())


def test_variants_of_kinds_are_planned_otherwise() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            assert (await session.plan_all(variants={"StorageBucket": "stateless"})).is_done

            with pytest.raises(Exception, match="no kind 'Bucket' can be handled otherwise"):
                await session.plan_all(variants={"Bucket": "stateless"})

    run(main())


# --- Values -----------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attributes]))


def elements(html: str) -> list[tuple[str, list[str]]]:
    page = Page()
    page.feed(html)
    return page.found


def hostile_values(hostile: str) -> list[Any]:
    """Every value, with a text of another writer in each place."""
    ref = ResourceRef("example.com", "Gadget", "default", hostile)
    metadata = {"name": hostile, "namespace": "default"}
    ready = {"type": "Ready", "status": "False", "reason": hostile, "message": hostile}
    status: Json = {
        "conditions": [ready],
        "setpoint": {"step": {"at": hostile, "decision": hostile, "kept": [hostile]}},
    }
    resource = Resource(
        {
            "apiVersion": "example.com/v1",
            "kind": "Gadget",
            "metadata": metadata,
            "spec": {"a": hostile},
            "status": status,
        }
    )
    event = EventRecord(ref, "", hostile, hostile, hostile, hostile)
    nodes = (GraphNode(ref, NodeState.FAILED, hostile),)
    return [
        EventListing((event,), Revision("1")),
        Inspection((ResourceDescription(DeclaredResource(resource), (event,)),), Revision("1")),
        Inspection((StepExplanation.of(resource),), Revision("1")),
        ResourceGraph(nodes, (GraphEdge(ref, ref, EdgeType.VALUE, hostile),), hostile),
    ]


@given(st.sampled_from(("<img src=x onerror=alert(1)>", "</td><script>", "'\"`", "\x00\x1b[2J")) | text)
def test_no_text_becomes_an_element_of_the_page(hostile: str) -> None:
    for found, harmless in zip(hostile_values(hostile or "x"), hostile_values("x"), strict=True):
        assert elements(found._repr_html_()) == elements(harmless._repr_html_())


def test_values_are_short_texts_and_neither_true_nor_false() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            found = [
                await session.describe(),
                await session.explain(),
                await session.events("StorageBucket/logs"),
                await session.graph(),
                await session.plan_all(),
            ]

            assert list(map(repr, found)) == [
                "[<<StorageBucket default/logs: UpToDate>, 1 event>]",
                "[<StorageBucket default/logs: create>]",
                "<1 event>",
                "<graph of 1 resource>",
                "<plan of all: in sync 1>",
            ]
            for one in found:
                with pytest.raises(TypeError, match="is neither true nor false"):
                    bool(one)

    run(main())


def test_nothing_is_written_by_any_of_them(tmp_path: Path) -> None:
    async def main(session: Session, here: World) -> None:
        await session.apply(bucket())
        here.drift()
        writes, before = here.writes, (await session.list(show_secrets=True)).to_json()
        for one in (
            session.describe(),
            session.explain(),
            session.events(),
            session.graph(bucket()),
            session.plan_all(),
        ):
            await one

        assert (here.writes, (await session.list(show_secrets=True)).to_json()) == (writes, before)

    async def both() -> None:
        async with world(tmp_path) as here, here.open() as session:
            await main(session, here)

    run(both())
