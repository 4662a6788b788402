"""DRIFTED, LAST LOOK and NEXT LOOK of `setpoint get`: from the record, and of a running process from its queue."""

import asyncio
import json
import re
import signal
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.resource import Resource
from setpoint.library.inspection.looks import Drift, Look, read_looks
from tests.cli.workspace import Workspace, bucket
from tests.cluster.polling import until

STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
HEADER: Final = ["KIND", "NAMESPACE", "NAME", "READY", "REASON", "AGE"]


def looks(workspace: Workspace, *arguments: str) -> dict[str, dict[str, str]]:
    """What `get -o json` shows of the look at each resource."""
    done = workspace.run("get", *arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return {one["metadata"]["name"]: one["status"]["setpoint"].get("look", {}) for one in items}


def wide(workspace: Workspace) -> dict[str, list[str]]:
    """DRIFTED, LAST LOOK and NEXT LOOK of each resource, as a table has them."""
    header, *rows = workspace.run("get", "-o", "wide").stdout.splitlines()
    start, end = header.index("DRIFTED"), header.index("LOCATION")
    return {row.split()[2]: re.split(r" {2,}", row[start:end].strip()) for row in rows}


def change(workspace: Workspace, name: str) -> None:
    """Another writer changes a field."""

    def edit(cloud: Any) -> None:
        assert cloud.call("PATCH", f"/storage/v1/b/{name}", {"storageClass": "NEARLINE"}).status == 200

    workspace.in_cloud(edit)


def declared(name: str, more: str = "") -> str:
    text = bucket(name).replace("spec: {", "spec: {storageClass: STANDARD, ")
    return text.replace("project-id: some-project", f"project-id: some-project{more}")


def test_without_a_process_there_is_what_is_on_record_and_no_time_is_made_up(workspace: Workspace) -> None:
    watched = declared("observed", ", setpoint.dev/management: observe")
    workspace.apply(declared("corrected"), declared("observed"), declared("quiet"))
    workspace.apply(watched)
    for name in ("corrected", "observed"):
        change(workspace, name)
    workspace.run_quietly("reconcile", "StorageBucket/corrected", "StorageBucket/observed", "StorageBucket/quiet")

    found = looks(workspace)

    assert {name: one.get("drifted") for name, one in found.items()} == {
        "corrected": "corrected",
        "observed": "withheld",
        "quiet": None,
    }
    assert all(STAMP.fullmatch(one["last"]) and "next" not in one for one in found.values())
    table = wide(workspace)
    assert {name: (cells[0], cells[2]) for name, cells in table.items()} == {
        "corrected": ("corrected", "-"),
        "observed": ("withheld", "-"),
        "quiet": ("-", "-"),
    }
    assert all(re.fullmatch(r"\d+[smhd]", cells[1]) for cells in table.values())
    # A narrow table is as before.
    assert workspace.run("get").stdout.splitlines()[0].split() == HEADER
    # What is shown can be applied, and changes nothing.
    workspace.write(workspace.run("get", "-o", "yaml").stdout)
    assert workspace.run("apply", "-f", "manifest.yaml", "-q").stdout == "unchanged 3\n"


def test_a_running_process_is_asked_for_what_no_record_has(workspace: Workspace) -> None:
    soon = ", cnrm.cloud.google.com/reconcile-interval-in-seconds: '1'"
    never = ", cnrm.cloud.google.com/reconcile-interval-in-seconds: '0'"
    workspace.apply(declared("often", soon), declared("never", never), declared("usual"))
    recorded = looks(workspace)
    process = workspace.daemon("--log-format", "json")
    until(lambda: all(one.get("next") for name, one in looks(workspace).items() if name != "never"))
    before = revisions(workspace)
    first = looks(workspace)["often"]["last"]

    # Idle looks go on, and each is told of; none of them is written.
    until(lambda: looks(workspace)["often"]["last"] > max(first, recorded["often"]["last"]))

    found = looks(workspace)
    assert revisions(workspace) == before
    assert "next" not in found["never"]
    assert all(STAMP.fullmatch(one["next"]) for name, one in found.items() if name != "never")
    assert found["usual"]["next"] > found["usual"]["last"] > ""
    cells = wide(workspace)
    assert re.fullmatch(r"in \d+[mh]", cells["usual"][2])
    assert cells["never"][2] == "-"
    named = workspace.run(
        *("get", "--sort-by", ".status.setpoint.look.next", "-o"),
        "custom-columns=NAME:.metadata.name,NEXT:.status.setpoint.look.next",
    ).stdout.splitlines()
    assert [line.split()[0] for line in named] == ["NAME", "often", "usual", "never"]
    assert named[3].split()[1] == "<none>"
    process.send(signal.SIGTERM)
    assert process.end() == 0
    assert not any("next" in one for one in looks(workspace).values())


def revisions(workspace: Workspace) -> dict[str, str]:
    """The revision of each resource: every write moves it."""
    done = workspace.run("get", "-o", "json")
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in json.loads(done.stdout)["items"]}


def test_a_process_that_does_not_answer_costs_nothing_but_its_part(workspace: Workspace) -> None:
    workspace.apply(declared("quiet"))
    recorded = looks(workspace)
    # It takes connections, and answers none.
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(workspace.folder / ".setpoint" / "state.db.sock"))
        deaf.listen()

        assert looks(workspace) == recorded


def test_without_a_store_nothing_is_asked(tmp_path: Path) -> None:
    assert asyncio.run(read_looks([], None)) == {}
    assert asyncio.run(read_looks([], tmp_path / "none.db")) == {}


WORDS: Final = st.sampled_from(["drifted", "both", "create", "in sync", "", None, 3])
STEPS: Final[st.SearchStrategy[dict[str, Any]]] = st.fixed_dictionaries(
    {},
    optional={
        "decision": WORDS,
        "reason": st.sampled_from(["deleted", "compared", None]),
        "writes": st.sampled_from([[], [{}], None]),
        "withheld": st.sampled_from([[], [{}]]),
        "at": st.sampled_from(["2026-01-31T12:00:00Z", "", None, 7, "soon"]),
    },
)


@given(STEPS, st.sampled_from(["Observed", "UpToDate", "Contested"]), st.sampled_from(["True", "False"]))
def test_whatever_a_status_holds_a_look_says_at_most_what_is_in_it(
    step: dict[str, Any], reason: str, status: str
) -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC).isoformat()
    conditions: list[Any] = [{"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": now}]
    resource = Resource({"kind": "A", "status": {"conditions": conditions, "setpoint": {"step": step}}})

    look = Look.on_record(resource)

    assert look.next == ""
    assert look.last in {"", now, step.get("at")}
    assert look.drift is not Drift.CORRECTED or (step["writes"] and reason != "Observed")
    shown = look.shown_in(resource)
    assert shown.status["setpoint"] == {"step": step, **({"look": look.to_data()} if look.to_data() else {})}


def test_a_conflict_of_writers_is_shown_as_contested() -> None:
    conditions: list[Any] = [{"type": "Contested", "status": "True", "reason": "Oscillation"}]
    step: Any = {"decision": "drifted", "writes": [{}]}
    resource = Resource({"kind": "A", "status": {"conditions": conditions, "setpoint": {"step": step}}})

    assert Look.on_record(resource).drift is Drift.CONTESTED


@pytest.mark.parametrize("other", [["no", "map"], "text", 3])
def test_a_status_of_another_form_is_left_as_it_is(other: Any) -> None:
    resource = Resource({"kind": "A", "status": {"setpoint": other}})

    assert Look(Drift.CORRECTED).shown_in(resource) is resource
