"""How commands end: a summary after what is not done, or a document with a schema; and lists that apply takes."""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import yaml

from setpoint.library.command_document import CommandDocument, ResultOutcome, counts_of, summary_line
from setpoint.localcloud.faults import FailOperation, FailRequest
from tests.cli.test_delete import INSTANCE
from tests.cli.workspace import Workspace, bucket, database

MOVED = (
    'StorageBucket default/logs failed: spec.location cannot change from "EU" to "US": fixed when the object is '
    "created. Put the old value back, or delete the resource and apply it again"
)
VERSIONED = "EU, versioning: {enabled: true}"


def _document(text: str) -> dict[str, Any]:
    """The document, which its schema knows to the last member."""
    data: dict[str, Any] = json.loads(text)
    assert msgspec.to_builtins(msgspec.convert(data, CommandDocument)) == data
    return data


def _outcomes(document: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["outcome"] for one in document["results"]}


# --- The summary ------------------------------------------------------------------------------------------------------


def test_a_summary_counts_each_outcome_in_one_order() -> None:
    found = [ResultOutcome.FAILED, *[ResultOutcome.UNCHANGED] * 106, ResultOutcome.UPDATED, ResultOutcome.NOT_FOUND]

    assert summary_line(counts_of(found)) == "updated 1, unchanged 106, not found 1, failed 1"


def test_without_resources_the_summary_says_so(workspace: Workspace) -> None:
    assert workspace.run("reconcile").stdout == "no resources\n"
    assert workspace.run("plan").stdout == "no resources\n"


def test_apply_and_reconcile_end_with_a_summary(workspace: Workspace) -> None:
    workspace.write(bucket("logs"), bucket("more"))
    created = workspace.run("apply", "-f", "manifest.yaml").stdout.splitlines()
    workspace.write(bucket("logs", VERSIONED), bucket("more"))
    updated = workspace.run("apply", "-f", "manifest.yaml").stdout.splitlines()
    reconciled = workspace.run("reconcile").stdout.splitlines()

    assert (created[-1], updated[-1], reconciled[-1]) == ("created 2", "updated 1, unchanged 1", "unchanged 2")


def test_plan_ends_with_a_summary_of_what_it_would_do(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"), bucket("more"))
    workspace.write(bucket("logs", VERSIONED), bucket("more"), bucket("new"), database("app", "{name: main}"))

    lines = workspace.run("plan", "-f", "manifest.yaml").stdout.splitlines()

    assert lines[-3:] == [
        "SQLDatabase default/app",
        "waiting: reference SQLInstance default/main is not found",
        "create 1, update 1, unchanged 1, waiting 1",
    ]


def test_an_object_that_is_not_reconciled_is_counted_too(workspace: Workspace) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: %s}\n"
    ends = []
    for value in ("one", "one", "two"):
        workspace.write(secret % value)
        ends.append(workspace.run_in_process("apply"))

    assert ends == [
        (0, ["Secret default/s created", "created 1"]),
        (0, ["Secret default/s unchanged", "unchanged 1"]),
        (0, ["Secret default/s updated", "updated 1"]),
    ]


def test_a_reconcile_of_files_leaves_out_what_is_not_reconciled(workspace: Workspace) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: one}\n"
    workspace.write(f"{secret}---\n{bucket('logs')}")
    workspace.run_in_process("apply")

    assert workspace.run_in_process("reconcile") == (0, ["StorageBucket default/logs unchanged", "unchanged 1"])


def test_failures_are_the_last_lines_before_the_summary(workspace: Workspace) -> None:
    names = [f"more-{number}" for number in range(9)]
    workspace.apply(bucket("logs"), *map(bucket, names))
    workspace.write(bucket("logs", "US"), database("app", "{name: main}"), *map(bucket, names))

    applied, planned = workspace.run("apply", "-f", "manifest.yaml"), workspace.run("plan", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert applied.stdout.splitlines()[-3:] == [
        "SQLDatabase default/app waiting: reference SQLInstance default/main is not found",
        MOVED,
        "unchanged 9, waiting 1, failed 1",
    ]
    assert planned.stdout.splitlines()[-3:-1] == ["StorageBucket default/logs", MOVED.partition("logs ")[2]]


def test_failures_are_the_last_lines_on_a_terminal_too(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"), bucket("more"))
    workspace.write(bucket("logs", "US"), bucket("more"))

    terminal = workspace.terminal("apply", "-f", "manifest.yaml", size=(240, 20))

    assert terminal.end() == 1
    assert [re.sub(" +[0-9]+s", "", line)[:40].rstrip() for line in terminal.lines] == [
        "StorageBucket default/more  unchanged",
        "StorageBucket default/logs  failed  spec",
        "unchanged 1, failed 1",
    ]


# --- Quiet ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_quiet_prints_what_is_not_done_and_the_summary(workspace: Workspace, option: str) -> None:
    workspace.apply(bucket("logs"), bucket("more"))
    workspace.write(bucket("logs", "US"), bucket("more"), database("app", "{name: main}"))

    applied = workspace.run("apply", option, "-f", "manifest.yaml")

    assert applied.stdout.splitlines() == [
        "SQLDatabase default/app waiting: reference SQLInstance default/main is not found",
        MOVED,
        "unchanged 1, waiting 1, failed 1",
    ]


@pytest.mark.parametrize(
    ("command", "summary"),
    [
        (("plan", "-f", "manifest.yaml"), "unchanged 2"),
        (("reconcile",), "unchanged 2"),
        (("delete", "-f", "manifest.yaml"), "deleted 2"),
    ],
)
def test_quiet_prints_only_the_summary_when_all_is_done(
    workspace: Workspace, command: tuple[str, ...], summary: str
) -> None:
    workspace.apply(bucket("logs"), bucket("more"))

    assert workspace.run(*command, "-q").stdout == f"{summary}\n"


def test_quiet_draws_nothing_on_a_terminal(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))

    terminal = workspace.terminal("apply", "-q", "-f", "manifest.yaml")

    assert terminal.end() == 0
    assert (terminal.lines, terminal.screen.was_cursor_hidden) == (["created 1"], False)


# --- For programs -----------------------------------------------------------------------------------------------------


def test_the_document_of_apply_has_the_fields_that_were_written(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"), bucket("more"))
    workspace.write(bucket("logs", VERSIONED), bucket("more"))

    applied = workspace.run("apply", "-f", "manifest.yaml", "-o", "json")

    assert _document(applied.stdout) == {
        "command": "apply",
        "results": [
            {
                "group": "storage.cnrm.cloud.google.com",
                "kind": "StorageBucket",
                "namespace": "default",
                "name": "logs",
                "outcome": "updated",
                "reason": "UpToDate",
                "message": "",
                "changes": [{"path": "spec.versioning.enabled", "rule": "spec", "before": False, "after": True}],
                "location": "projects/some-project/buckets/logs",
            },
            {
                "group": "storage.cnrm.cloud.google.com",
                "kind": "StorageBucket",
                "namespace": "default",
                "name": "more",
                "outcome": "unchanged",
                "reason": "UpToDate",
                "message": "",
                "changes": [],
                "location": "projects/some-project/buckets/more",
            },
        ],
        "summary": {"updated": 1, "unchanged": 1},
        "exitCode": 0,
        "warnings": [],
    }


def test_the_document_of_plan_has_the_plans(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.write(bucket("logs", VERSIONED), bucket("new"), database("app", "{name: main}"))

    document = _document(workspace.run("plan", "-f", "manifest.yaml", "-o", "json").stdout)

    assert (document["command"], document["exitCode"]) == ("plan", 2)
    assert _outcomes(document) == {"logs": "update", "new": "create", "app": "waiting"}
    assert document["summary"] == {"create": 1, "update": 1, "waiting": 1}
    (logs,) = [one for one in document["results"] if one["name"] == "logs"]
    assert [change["path"] for change in logs["changes"]] == ["spec.versioning.enabled"]
    assert (logs["plan"]["decision"], len(logs["plan"]["writes"])) == ("intent changed", 1)
    (app,) = [one for one in document["results"] if one["name"] == "app"]
    assert (app["reason"], app["message"]) == (
        "DependencyNotFound",
        "reference SQLInstance default/main is not found",
    )


def test_the_documents_of_reconcile_and_delete_have_their_outcomes(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", {"website": {"mainPageSuffix": "index.html"}}))

    reconciled = _document(workspace.run("reconcile", "-o", "json").stdout)
    deleted = _document(workspace.run("delete", "StorageBucket/logs", "StorageBucket/nosuch", "-o", "json").stdout)

    assert (reconciled["command"], _outcomes(reconciled)) == ("reconcile", {"logs": "updated"})
    assert [one["path"] for one in reconciled["results"][0]["changes"]] == ["spec.website.mainPageSuffix"]
    assert (deleted["command"], _outcomes(deleted)) == ("delete", {"logs": "deleted", "nosuch": "notFound"})
    assert (deleted["exitCode"], deleted["summary"]) == (1, {"deleted": 1, "notFound": 1})


def test_a_deletion_that_does_not_succeed_has_written_no_field(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.in_cloud(lambda cloud: cloud.inject(FailRequest(method="DELETE", status=400, times=20)))

    (result,) = _document(workspace.run("delete", "StorageBucket/logs", "-o", "json").stdout)["results"]

    assert (result["outcome"], result["reason"], result["changes"]) == ("failed", "DeleteFailed", [])


def test_a_command_that_ends_early_prints_its_document_too(workspace: Workspace) -> None:
    done = workspace.run("apply", "-f", "nosuch.yaml", "-o", "json")

    message = "nosuch.yaml: No such file or directory: name a file, a folder or - for standard input"
    assert _document(done.stdout) == {
        "command": "apply",
        "results": [],
        "summary": {},
        "exitCode": 1,
        "warnings": [],
        "error": message,
    }
    assert (done.returncode, done.stderr) == (1, f"error: {message}\n")


def test_the_document_is_the_same_in_yaml(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))

    texts = [workspace.run("apply", "-f", "manifest.yaml", "-o", form).stdout for form in ("json", "yaml")]

    assert json.loads(texts[0]) == yaml.safe_load(texts[1])


def _changes(workspace: Workspace) -> list[str]:
    workspace.write(bucket("logs"), bucket("more"))
    texts = [_run(workspace, "apply")]
    workspace.write(bucket("logs", VERSIONED), bucket("more", "US"), database("app", "{name: main}"))
    texts += [_run(workspace, "apply"), _run(workspace, "apply")]
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", {"website": {"mainPageSuffix": "index.html"}}))
    return [*texts, _run(workspace, "reconcile", "StorageBucket/logs")]


def _operations(workspace: Workspace) -> list[str]:
    workspace.in_cloud(lambda cloud: cloud.clock.release())
    workspace.write(INSTANCE, database("app", "{name: main}"))
    # The record of a creation that is finished by another step than the one that began it has no fields.
    applied = re.sub(r'"changes": \[[^]]*\]', '"changes": []', _run(workspace, "apply"))
    return [applied, _run(workspace, "delete")]


def _deletions(workspace: Workspace) -> list[str]:
    workspace.in_cloud(lambda cloud: cloud.clock.release())
    kept = bucket("kept").replace("some-project", "some-project, cnrm.cloud.google.com/deletion-policy: abandon")
    workspace.write(kept, INSTANCE, database("app", "{name: main}"))
    _run(workspace, "apply")
    workspace.in_cloud(lambda cloud: cloud.inject(FailOperation(type="DELETE_DATABASE", times=20)))
    return [_run(workspace, "delete", "SQLInstance/main", "SQLDatabase/app", "StorageBucket/kept", "SQLUser/nosuch")]


def _run(workspace: Workspace, command: str, *targets: str) -> str:
    text = "\n".join(workspace.run_in_process(command, *targets, output="json")[1])
    return re.sub("operations?[ /][0-9a-f-]{36}", "operation x", text)


@pytest.mark.parametrize("scenario", [_changes, _operations, _deletions], ids=lambda one: one.__name__.strip("_"))
def test_the_documents_of_a_daemon_are_those_of_a_local_command(
    workspace: Workspace, second_workspace: Workspace, scenario: Callable[[Workspace], list[str]]
) -> None:
    local = scenario(second_workspace)
    workspace.daemon()

    assert [_document(text) for text in scenario(workspace)] == [_document(text) for text in local]


# --- Lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(
    ("targets", "names"),
    [
        ((), ["logs", "more"]),
        (("StorageBucket",), ["logs", "more"]),
        (("StorageBucket/logs", "StorageBucket/more"), ["logs", "more"]),
        (("-A", "StorageBucket/logs"), ["logs"]),
        (("SQLInstance",), []),
        (("-n", "other"), []),
    ],
)
def test_what_can_be_several_is_a_list_however_many_there_are(
    workspace: Workspace, form: str, targets: tuple[str, ...], names: list[str]
) -> None:
    workspace.apply(bucket("logs"), bucket("more"))

    text = workspace.run("get", *targets, "-o", form).stdout

    shown: Any = json.loads(text) if form == "json" else yaml.safe_load(text)
    assert (shown["apiVersion"], shown["kind"]) == ("v1", "List")
    assert [one["metadata"]["name"] for one in shown["items"]] == names


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_one_named_resource_is_the_object(workspace: Workspace, form: str) -> None:
    workspace.apply(bucket("logs"))

    shown = yaml.safe_load(workspace.run("get", "StorageBucket/logs", "-o", form).stdout)

    assert (shown["kind"], shown["metadata"]["name"]) == ("StorageBucket", "logs")


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("targets", [(), ("StorageBucket/logs",)], ids=["several", "one"])
def test_what_get_prints_can_be_applied_and_changes_nothing(
    workspace: Workspace, form: str, targets: tuple[str, ...]
) -> None:
    workspace.in_cloud(lambda cloud: cloud.clock.release())
    workspace.apply(bucket("logs", VERSIONED), bucket("more"), INSTANCE, database("app", "{name: main}"))
    before = workspace.run("get", "-o", "json").stdout
    workspace.in_cloud(lambda cloud: cloud.journal.clear())
    printed = workspace.run("get", *targets, "-o", form).stdout
    (workspace.folder / "printed.yaml").write_text(printed, encoding="utf-8")
    count = 1 if targets else 4

    planned = workspace.run("plan", "-f", "printed.yaml", "-q")
    applied = workspace.run("apply", "-f", "printed.yaml", "-q")

    assert (planned.returncode, planned.stdout) == (0, f"unchanged {count}\n")
    assert (applied.returncode, applied.stdout) == (0, f"unchanged {count}\n")
    assert workspace.in_cloud(lambda cloud: cloud.journal.counts())["writes"] == 0
    assert workspace.run("get", "-o", "json").stdout == before


def test_a_hidden_value_is_not_applied(workspace: Workspace) -> None:
    workspace.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: hunter2}\n")
    (workspace.folder / "printed.yaml").write_text(workspace.run("get", "-o", "yaml").stdout, encoding="utf-8")
    (workspace.folder / "shown.yaml").write_text(
        workspace.run("get", "-o", "yaml", "--show-secrets").stdout, encoding="utf-8"
    )

    refused, applied = (workspace.run("apply", "-f", file) for file in ("printed.yaml", "shown.yaml"))

    assert refused.returncode == 1
    assert 'data.key is "(redacted)", which stands for a value that was not shown' in refused.stderr
    assert applied.stdout.splitlines()[-1] == "unchanged 1"
