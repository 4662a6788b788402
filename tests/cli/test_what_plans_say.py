"""What `plan`, `apply`, `explain` and `events` say of deleted, adopted, kept and unconverged objects."""

import io
import json
import re

import pytest

from setpoint.cli.views.plan import plan_view
from setpoint.cli.views.terminal import SafeConsole
from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.plan import Plan
from setpoint.localcloud.faults import RewriteField
from tests.cli.workspace import Workspace, bucket, database

PROTECTED = (
    "kept, though the spec leaves it out: spec.uniformBucketLevelAccess (protected: only an explicit value, or null, "
    "gives it up)"
)
PROJECT = "project some-project, by the annotation cnrm.cloud.google.com/project-id"
NOT_TAKEN = (
    "sent before, the service did not take it: nothing is sent again until the spec or the live object changes; "
    "`setpoint reconcile` sends it again"
)


def _make_bucket(workspace: Workspace, **members: object) -> None:
    """Creates the bucket by the API, without a resource."""
    body = {"name": "logs", "location": "EU", **members}
    made = workspace.in_cloud(lambda cloud: cloud.call("POST", "/storage/v1/b?project=some-project", body))
    assert made.status == 200


def test_the_plan_of_what_did_not_converge_names_the_field_and_fails_a_gate(workspace: Workspace) -> None:
    workspace.in_cloud(
        lambda cloud: cloud.inject(RewriteField("storage#bucket", "website.mainPageSuffix", "theirs.html"))
    )
    workspace.write(bucket("logs", "EU, website: {mainPageSuffix: ours.html}"))
    assert workspace.run_in_process("apply")[0] == 1

    code, lines = workspace.run_in_process("plan")
    as_data = workspace.run("plan", "-f", "manifest.yaml", "-o", "json")

    assert (code, lines) == (
        2,
        [
            "StorageBucket default/logs",
            NOT_TAKEN,
            PROJECT,
            '!  spec.website.mainPageSuffix  "theirs.html" → "ours.html"  the spec says so',
            "Nothing to write.",
            "withheld 1",
        ],
    )
    assert as_data.returncode == 2
    found = json.loads(as_data.stdout)["results"][0]["plan"]
    assert (found["writes"], found["because"]) == ([], NOT_TAKEN)
    assert found["withheld"] == [
        {"path": "spec.website.mainPageSuffix", "rule": "spec", "before": "theirs.html", "after": "ours.html"}
    ]


def test_a_deleted_object_is_planned_as_one_that_was_deleted(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    assert workspace.run_in_process("plan")[1][:2] == ["StorageBucket default/logs", "create: not there yet"]
    workspace.run_in_process("apply")
    workspace.in_cloud(lambda cloud: cloud.call("DELETE", "/storage/v1/b/logs"))

    code, lines = workspace.run_in_process("plan")
    as_data = workspace.run("plan", "-f", "manifest.yaml", "-o", "json")

    assert (code, lines[:2]) == (2, ["StorageBucket default/logs", "create: it was deleted"])
    found = json.loads(as_data.stdout)["results"][0]["plan"]
    assert (found["decision"], found["reason"]) == ("create", "deleted")
    assert workspace.run_in_process("apply") == (0, ["StorageBucket default/logs created", "created 1"])
    assert "create (it was deleted)" in workspace.run_in_process("explain", "StorageBucket/logs")[1][1]


def test_an_object_that_was_there_before_is_adopted(workspace: Workspace) -> None:
    _make_bucket(workspace, labels={"managed-by-cnrm": "true"})
    workspace.write(bucket("logs"))

    planned = workspace.run_in_process("plan")
    applied = workspace.run_in_process("apply")
    again = workspace.run_in_process("apply")

    assert planned == (
        0,
        [
            "StorageBucket default/logs",
            "first look: it was there before, and is adopted",
            PROJECT,
            "Nothing to write.",
            "unchanged 1",
        ],
    )
    assert applied == (
        0,
        ["StorageBucket default/logs adopted: it was there before, and nothing was changed", "adopted 1"],
    )
    assert again == (0, ["StorageBucket default/logs unchanged", "unchanged 1"])
    explained = workspace.run_in_process("explain", "StorageBucket/logs")[1]
    assert explained[1].endswith(", by setpoint apply: first look (it was there before, and is adopted)")
    (event,) = [line for line in workspace.run_in_process("events", "StorageBucket/logs")[1] if "Adopted" in line]
    assert re.search(r"Adopted +StorageBucket default/logs +1 +adopted .*logs: it was there before$", event)


def test_an_adoption_that_takes_an_operation_is_shown_as_one(workspace: Workspace) -> None:
    workspace.make_instance("main")
    manifest = {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLInstance",
        "metadata": {"name": "main", "annotations": {"cnrm.cloud.google.com/project-id": "some-project"}},
        "spec": {
            "databaseVersion": "MYSQL_8_0",
            "region": "europe-west1",
            "settings": {"tier": "db-n1-standard-2"},
        },
    }
    workspace.write(json.dumps(manifest))
    workspace.hold_operations()
    applying = workspace.piped("apply", "-f", "manifest.yaml")
    applying.until(lambda: "is running" in applying.text)
    workspace.release()

    assert applying.end() == 0
    last, summary = applying.text.splitlines()[-2:]
    assert last.startswith("SQLInstance default/main adopted")
    assert summary == "adopted 1"


def test_a_protected_field_that_is_taken_out_of_the_spec_is_told_once(workspace: Workspace) -> None:
    workspace.write(bucket("logs", "EU, uniformBucketLevelAccess: true"))
    workspace.run_in_process("apply")
    workspace.write(bucket("logs"))

    planned = workspace.run_in_process("plan")
    applied = workspace.run_in_process("apply")
    again = workspace.run_in_process("apply")

    assert PROTECTED in planned[1]
    assert applied == (0, [f"StorageBucket default/logs unchanged: {PROTECTED}", "unchanged 1"])
    assert again == (0, ["StorageBucket default/logs unchanged", "unchanged 1"])
    told = [line for line in workspace.run_in_process("events", "StorageBucket/logs")[1] if " Kept " in line]
    assert [line.split("  ")[-1].strip() for line in told] == [PROTECTED]
    explained = workspace.run_in_process("explain", "StorageBucket/logs")[1]
    assert "  taken out of the spec, and kept: spec.uniformBucketLevelAccess: true (protected)" in explained


def test_a_kind_without_cookies_is_compared_in_full(workspace: Workspace) -> None:
    workspace.make_instance("main")
    workspace.write(database("app", "{external: main}"))
    workspace.run_in_process("apply")

    assert workspace.run_in_process("plan") == (
        0,
        ["SQLDatabase default/app", "in sync: compared in full", PROJECT, "Nothing to write.", "unchanged 1"],
    )


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        (Plan(Decision.CREATE), "create: not there yet"),
        (Plan(Decision.CREATE, reason=DecisionReason.DELETED), "create: it was deleted"),
        (Plan(Decision.INTENT_CHANGED), "intent changed: what is declared changed"),
        (Plan(Decision.DRIFTED), "drifted: the live object changed"),
        (Plan(Decision.BOTH), "both: both sides changed"),
        (Plan(Decision.REVISED), "revised: the kind's revision changed, what is declared did not"),
        (
            Plan(Decision.REVISED_AND_CHANGED),
            "revised, live changed: the kind's revision changed, and the live object reads differently",
        ),
        (Plan(Decision.FIRST_LOOK), "first look: no cookie to go by"),
        (
            Plan(Decision.FIRST_LOOK, reason=DecisionReason.ADOPTED),
            "first look: it was there before, and is adopted",
        ),
        (Plan(Decision.DIFFERS, reason=DecisionReason.COMPARED), "differs: compared in full"),
        (Plan(Decision.IN_SYNC, reason=DecisionReason.COMPARED), "in sync: compared in full"),
        (Plan(Decision.IN_SYNC), "in sync: nothing changed: fast path"),
    ],
)
def test_every_decision_is_said_in_words(plan: Plan, line: str) -> None:
    printed = io.StringIO()
    SafeConsole(file=printed, width=200).print(plan_view(plan))

    assert printed.getvalue().splitlines()[0] == line


# --- Who asked --------------------------------------------------------------------------------------------------------


def test_a_step_that_the_daemon_takes_for_a_command_names_the_command(workspace: Workspace) -> None:
    workspace.daemon()
    workspace.write(bucket("logs"))
    workspace.run_in_process("apply")
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", {"website": {"mainPageSuffix": "index.html"}}))

    workspace.run_in_process("reconcile", "StorageBucket/logs")

    explained = workspace.run_in_process("explain", "StorageBucket/logs")[1]
    assert explained[1].endswith(", by setpoint reconcile: drifted")


def test_a_request_that_left_nothing_to_record_is_explained(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    workspace.run_in_process("apply")
    workspace.daemon()

    workspace.run_in_process("reconcile", "StorageBucket/logs")

    explained = workspace.run_in_process("explain", "StorageBucket/logs")[1]
    assert explained[1].endswith(", by setpoint apply: create")
    assert [re.sub(r" at \S+:", " at T:", line) for line in explained if line.startswith("requested")] == [
        "requested by setpoint reconcile at T: handled, and nothing was left to record"
    ]
    found = json.loads(workspace.run("explain", "StorageBucket/logs", "-o", "json").stdout)
    assert (found["request"]["by"], found["request"]["handled"]) == ("setpoint reconcile", True)


def test_a_plan_goes_on_to_what_follows_and_names_what_will_be_known(workspace: Workspace) -> None:
    workspace.environment["SETPOINT_GOOGLE_ENDPOINT"] = workspace.environment["STORAGE_EMULATOR_HOST"]
    job = {
        "apiVersion": "cloudscheduler.cnrm.cloud.google.com/v1beta1",
        "kind": "CloudSchedulerJob",
        "metadata": {"name": "hourly", "annotations": {"cnrm.cloud.google.com/project-id": "some-project"}},
        "spec": {
            "location": "europe-west1",
            "schedule": "0 * * * *",
            "httpTarget": {
                "uri": "https://example.com",
                "oidcToken": {"serviceAccountRef": {"name": "runner"}},
            },
        },
    }
    account = {**job, "apiVersion": "iam.cnrm.cloud.google.com/v1beta1", "kind": "IAMServiceAccount", "spec": {}}
    account["metadata"] = {"name": "runner", "annotations": {"cnrm.cloud.google.com/project-id": "some-project"}}
    workspace.write(f"{json.dumps(account)}\n", f"{json.dumps(job)}\n")

    code, lines = workspace.run_in_process("plan")
    comment = workspace.run("plan", "-f", "manifest.yaml", "-o", "markdown").stdout

    at = lines.index("CloudSchedulerJob default/hourly")
    assert (code, lines[-1]) == (2, "create 1, waiting 1")
    assert lines[at + 1 : at + 4] == [
        "waiting: reference IAMServiceAccount default/runner is not ready",
        "then create: not there yet",
        PROJECT,
    ]
    (named,) = [line for line in lines[at:] if "oidcToken" in line]
    field = "spec.httpTarget.oidcToken.serviceAccountRef.external"
    assert " ".join(named.split()) == f"+ {field} unset → (known after apply) the spec says so"
    (section,) = [part for part in comment.split("<details") if "hourly" in part]
    assert "<b>waiting</b>" in section
    assert "Then: <code>create</code>" in section
    assert "then&#58; spec" in section
