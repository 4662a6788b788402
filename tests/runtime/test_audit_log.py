"""The audit log: a write is on record before it is sent, with what was sent and what came back."""

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from setpoint.clients.http import HttpRequest, HttpResponse
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action
from setpoint.core.schema.policy import Rule
from setpoint.core.values.paths import Path as FieldPath
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.engine.step.reports import NoReports, ReportedWrite, StepSubject
from setpoint.errors import RemoteRefused, RemoteUnavailable, StoreError, UserError
from setpoint.runtime.audit_log import AuditedRequests, AuditedSteps, AuditLog
from setpoint.testing.harness import contract_harness
from tests.engine.gadget_fixture import GadgetFixture

NOW = "2026-01-01T00:00:00Z"
SUBJECT = StepSubject(ResourceRef("g", "Bucket", "default", "logs"), "its declaration", 1)


def _log(file: Path) -> AuditLog:
    return AuditLog(str(file), lambda: NOW)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def _write(before: Any = 1, after: Any = 2) -> ReportedWrite:
    change = FieldChange(FieldPath.parse("spec.size"), before, after, Rule.SPEC)
    return ReportedWrite(SUBJECT, Action.UPDATE, "b/logs", "drifted", (change,))


# --- The file ---------------------------------------------------------------------------------------------------------


def test_each_line_is_in_the_file_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    log = _log(tmp_path / "audit")

    log.append("one", {"a": 1})

    assert _lines(tmp_path / "audit") == [{"time": NOW, "event": "one", "a": 1}]
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o600


def test_a_rotated_file_is_made_anew_and_lines_go_on_there(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    log = _log(file)
    log.append("one", {})

    file.rename(tmp_path / "audit.1")
    log.append("two", {})

    assert [line["event"] for line in _lines(tmp_path / "audit.1")] == ["one"]
    assert [line["event"] for line in _lines(file)] == ["two"]


def test_a_line_that_was_cut_off_does_not_spoil_the_next(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    file.write_bytes(b'{"event":"one"}\n{"event":"tw')

    _log(file).append("three", {})

    assert file.read_bytes().splitlines()[1] == b'{"event":"tw'
    assert json.loads(file.read_bytes().splitlines()[2])["event"] == "three"


def test_a_file_that_cannot_be_opened_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file or directory: name a file in a folder that exists"):
        _log(tmp_path / "no" / "such")


def test_a_dash_is_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    AuditLog("-", lambda: NOW).append("one", {})

    assert json.loads(capfd.readouterr().out)["event"] == "one"


# --- Writes and requests ----------------------------------------------------------------------------------------------


def test_a_write_its_requests_and_its_end_have_one_name(tmp_path: Path) -> None:
    log = _log(tmp_path / "audit")
    requests = AuditedRequests("google", log)
    request = HttpRequest("PATCH", "https://host/b/logs?key=hidden", body=b'{"size":2,"password":"hunter2"}')

    with AuditedSteps(log, NoReports(), "pod-1").writing([_write()]):
        assert requests.on_request(request) is None
        requests.on_response(request, HttpResponse(200, {}, b"{}"))

    text = (tmp_path / "audit").read_text(encoding="utf-8")
    write, sent, received, end = _lines(tmp_path / "audit")
    resource = {"group": "g", "kind": "Bucket", "namespace": "default", "name": "logs"}
    fields = [{"path": "spec.size", "rule": "spec", "before": 1, "after": 2}]
    assert {one["write"] for one in (write, sent, received, end)} == {"pod-1/1"}
    assert (write["event"], write["resource"], write["askedBy"]) == ("write", resource, "its declaration")
    assert (write["action"], write["target"], write["why"]) == ("update", "b/logs", "drifted")
    assert (write["fields"], write["fieldCount"], write["generation"]) == (fields, 1, 1)
    assert (sent["event"], sent["service"], sent["request"]) == ("request", "google", "PATCH /b/logs")
    assert sent["body"] == {"size": 2, "password": "(redacted)"}
    assert (received["event"], received["status"], end["event"]) == ("response", 200, "written")
    assert "hidden" not in text


def test_requests_outside_of_writes_reads_and_dry_runs_are_not_recorded(tmp_path: Path) -> None:
    log = _log(tmp_path / "audit")
    requests = AuditedRequests("cluster", log)

    requests.on_request(HttpRequest("PATCH", "https://host/status"))
    with AuditedSteps(log, NoReports(), "p").writing([_write()]):
        requests.on_request(HttpRequest("GET", "https://host/b/logs"))
        requests.on_request(HttpRequest("PATCH", "https://host/b/logs?dryRun=All"))

    assert [line["event"] for line in _lines(tmp_path / "audit")] == ["write", "written"]


@pytest.mark.parametrize(
    ("fail", "name"),
    [(lambda: RemoteUnavailable("hunter2"), "RemoteUnavailable"), (KeyboardInterrupt, "KeyboardInterrupt")],
)
def test_a_write_that_failed_is_recorded_without_the_text_of_the_error(
    tmp_path: Path, fail: Callable[[], BaseException], name: str
) -> None:
    log = _log(tmp_path / "audit")
    request = HttpRequest("POST", "https://host/b")

    def send() -> None:
        with AuditedSteps(log, NoReports(), "p").writing([_write()]):
            AuditedRequests("google", log).on_error(request, RemoteUnavailable("hunter2"))
            raise fail()

    with pytest.raises((RemoteUnavailable, KeyboardInterrupt)):
        send()

    _, received, end = _lines(tmp_path / "audit")
    assert (received["event"], received["error"]) == ("response", "RemoteUnavailable")
    assert (end["event"], end["error"]) == ("failed", name)
    assert "hunter2" not in (tmp_path / "audit").read_text(encoding="utf-8")


def test_large_values_and_bodies_are_given_by_size_and_digest(tmp_path: Path) -> None:
    log = _log(tmp_path / "audit")

    with AuditedSteps(log, NoReports(), "p").writing([_write(after="x" * 5_000)]):
        AuditedRequests("google", log).on_request(
            HttpRequest("POST", "https://host/b", body=json.dumps({"a": "y" * 50_000}).encode())
        )

    write, sent, _ = _lines(tmp_path / "audit")
    assert (write["fields"][0]["after"]["bytes"], len(write["fields"][0]["after"]["sha256"])) == (5_002, 64)
    assert sent["body"]["bytes"] == 50_008
    assert all(len(line) < 4_096 for line in (tmp_path / "audit").read_bytes().splitlines())


def test_drift_and_refusals_are_recorded(tmp_path: Path) -> None:
    steps = AuditedSteps(_log(tmp_path / "audit"), NoReports(), "p")

    steps.drift(SUBJECT, [])
    steps.drift(SUBJECT, ["spec.size"])
    steps.drift(SUBJECT, [], is_deleted=True)
    steps.refused(SUBJECT, RemoteRefused("403: no"))

    drift, deleted, refused = _lines(tmp_path / "audit")
    assert (drift["event"], drift["fields"], drift["deleted"]) == ("drift", ["spec.size"], False)
    assert (deleted["fields"], deleted["deleted"]) == ([], True)
    assert (refused["event"], refused["error"], refused["message"]) == ("refused", "RemoteRefused", "403: no")


# --- In a step --------------------------------------------------------------------------------------------------------


async def _created(file: Path) -> tuple[GadgetFixture, StepOutcome]:
    fixture = GadgetFixture()
    async with contract_harness(fixture) as harness:
        engine = replace(harness.engine, reporter=AuditedSteps(_log(file), NoReports(), "p"))
        await harness.apply()
        return fixture, await step(fixture.ref, engine, trigger="setpoint reconcile")


def test_a_creation_is_on_record_with_who_asked(tmp_path: Path) -> None:
    asyncio.run(_created(tmp_path / "audit"))

    write, end = _lines(tmp_path / "audit")
    assert (write["action"], write["askedBy"], end["event"]) == ("create", "setpoint reconcile", "written")


def test_nothing_is_sent_while_the_audit_log_cannot_be_written() -> None:
    # A device that is always full.
    fixture, outcome = asyncio.run(_created(Path("/dev/full")))

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, StoreError)
    assert "the audit log cannot be written: No space left on device: nothing is sent" in str(outcome.error)
    assert fixture.objects() == []


def test_a_life_of_a_resource_is_on_record(tmp_path: Path) -> None:
    """Created, drifted, corrected, drifted while it is only observed, deleted by another writer, refused, deleted."""

    async def play() -> None:
        fixture = GadgetFixture()
        async with contract_harness(fixture) as harness:
            engine = replace(harness.engine, reporter=AuditedSteps(_log(tmp_path / "audit"), NoReports(), "p"))
            await harness.apply()
            await step(fixture.ref, engine)
            fixture.drift("size", 7)
            await step(fixture.ref, engine)
            await harness.apply(annotations={MANAGEMENT: "observe"})
            fixture.drift("size", 8)
            await step(fixture.ref, engine)
            await harness.apply()
            fixture.delete_outside()
            await step(fixture.ref, engine)
            await harness.apply(annotations={MANAGEMENT: "sometimes"})
            await step(fixture.ref, engine)
            await harness.apply()
            await harness.store.delete(fixture.ref)
            await step(fixture.ref, engine)

    asyncio.run(play())

    events = [
        (line["event"], line.get("action") or line.get("error") or line.get("fields"))
        for line in _lines(tmp_path / "audit")
    ]
    assert events == [
        *(("write", "create"), ("written", None), ("drift", ["spec.size"]), ("write", "update"), ("written", None)),
        *(("drift", ["spec.size"]), ("drift", []), ("write", "create"), ("written", None)),
        *(("refused", "ManifestInvalid"), ("write", "delete"), ("written", None)),
    ]


def test_a_killed_process_leaves_every_line_that_it_had_appended(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    child = os.fork()
    if child == 0:
        log = _log(file)
        for number in range(100):
            log.append("line", {"number": number})
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)

    assert [line["number"] for line in _lines(file)] == list(range(100))
