"""Timelines of several sources: pages without a gap, what an audit log says of older times, and the last step."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.decide import Cookie
from setpoint.dashboard.api.resource_models import Entry
from setpoint.dashboard.views.audit_history import MAX_BYTES, AuditHistory
from setpoint.dashboard.views.timeline import entries_of, merged_timeline
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import HistoryEntry, HistoryType

REF = ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", "default", "logs")
SUBJECT = {
    "resource": {"group": REF.group, "kind": REF.kind, "namespace": REF.namespace, "name": REF.name},
    "generation": 1,
    "askedBy": "resync",
}
OTHER = {**SUBJECT, "resource": {**SUBJECT["resource"], "name": "other"}}  # type: ignore[dict-item]
CHANGE = {"path": "spec.storageClass", "rule": "spec", "before": "NEARLINE", "after": "STANDARD"}
SECRET_CHANGE = {"path": "spec.password", "rule": "spec", "before": "hunter2", "after": "hunter3"}
REQUEST = "PATCH /storage/v1/b/logs"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def line(second: int, event: str, members: dict[str, Any]) -> str:
    return json.dumps({"time": at(second), "event": event, **members}, separators=(",", ":")) + "\n"


def written(second: int, identity: str, subject: dict[str, Any] = SUBJECT, change: dict[str, str] = CHANGE) -> str:
    what = {"action": "update", "target": "b/logs", "why": "drifted", "fields": [change]}
    asked = {"write": identity, "service": "google", "request": REQUEST, "body": {}}
    return (
        line(second, "write", {"write": identity, **subject, **what})
        + line(second, "request", asked)
        + line(second, "response", {"write": identity, "request": REQUEST, "status": 200})
        + line(second, "written", {"write": identity})
    )


def entries(file: Path, before: str = "", most_bytes: int = MAX_BYTES) -> list[Entry]:
    return entries_of(asyncio.run(AuditHistory(file, most_bytes).entries(REF, before)))


@pytest.mark.laws
@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 7))
def test_pages_have_every_entry_once_the_newest_first(seconds: list[int], most: int) -> None:
    every = [Entry(time=at(second), type="event", who="w", text=str(n)) for n, second in enumerate(seconds)]
    shown: list[Entry] = []
    before: str | None = ""
    while before is not None:
        page = merged_timeline(every, before, most=most, now=at(30))
        assert len(page.entries) <= most
        shown += page.entries
        before = page.next

    assert sorted(one.text for one in shown) == sorted(one.text for one in every)
    assert [one.time for one in shown] == sorted((one.time for one in every), reverse=True)


def test_an_audit_log_tells_of_steps_with_fields_and_writes_with_requests(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    text = line(0, "started", {"process": "p", "version": "1"}) + written(1, "p/1", OTHER) + written(2, "p/2")
    text += line(3, "drift", {**SUBJECT, "fields": ["spec.website"], "deleted": False})
    text += line(4, "refused", {**SUBJECT, "error": "RemoteRefused", "message": "403"}) + '{"time":"2026'
    file.write_text(text, encoding="utf-8")

    found = entries(file)

    assert [(one.time, one.type) for one in found] == [
        (at(4), "refused"),
        (at(3), "drift"),
        (at(2), "write"),
        (at(2), "step"),
    ]
    write, step = found[2], found[3]
    assert [(one.path, one.before, one.after) for one in step.fields or ()] == [
        ("spec.storageClass", "NEARLINE", "STANDARD")
    ]
    assert [(one.method, one.url, one.status) for one in write.requests or ()] == [("PATCH", "/storage/v1/b/logs", 200)]


def test_of_an_audit_log_only_what_is_older_than_the_history_is_told(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    file.write_text(written(1, "p/1") + written(5, "p/2"), encoding="utf-8")

    assert {one.time for one in entries(file, at(5))} == {at(1)}


def test_a_value_with_a_secret_sounding_name_in_an_audit_log_is_hidden(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    file.write_text(written(1, "p/1", change=SECRET_CHANGE), encoding="utf-8")

    shown = repr(entries(file))

    assert ("spec.password" in shown, "hunter" in shown) == (True, False)


def test_of_a_large_audit_log_the_end_is_read_from_the_beginning_of_a_line(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    file.write_text(written(1, "p/1") + written(5, "p/2"), encoding="utf-8")

    assert {one.time for one in entries(file, most_bytes=len(written(5, "p/2")) + 10)} == {at(5)}


def test_an_audit_log_that_was_rotated_away_has_no_entries(tmp_path: Path) -> None:
    assert entries(tmp_path / "gone") == []


def test_a_step_of_a_changed_spec_tells_of_the_change() -> None:
    before, after = (str(Cookie(digest * 64, "c" * 64)) for digest in "ab")
    data: Any = {"decision": "edited", "source": "abc:f.yaml", "cookie": {"before": before, "after": after}}

    found = entries_of([HistoryEntry(HistoryType.STEP, at(1), data)])

    assert [(one.type, one.who) for one in found] == [("step", ""), ("specChanged", "abc:f.yaml")]
