"""Timelines of several sources: pages without a gap, what an audit log says of older times, and the last step."""

import asyncio
import gzip
import json
import os
import tempfile
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.decide import Cookie
from setpoint.dashboard.api.resource_models import Entry, FieldChangeModel
from setpoint.dashboard.views.audit_history import MAX_BYTES, AuditHistory
from setpoint.dashboard.views.timeline import entries_of, merged_timeline, timeline_of
from setpoint.engine.ports import EventRecord
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


# --- Rotated audit logs -----------------------------------------------------------------------------------------------


def rotated(folder: Path, *files: tuple[str, str]) -> Path:
    """An audit log and the files that it was rotated to, the oldest first: the ending of each name, and its text."""
    for number, (ending, text) in enumerate(files):
        path = folder / f"audit.log{ending}"
        data = text.encode()
        path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
        os.utime(path, (number + 1, number + 1))
    return folder / "audit.log"


@pytest.mark.parametrize(
    "endings",
    [(".3.gz", ".2.gz", ".1"), ("-20260101.gz", "-20260102.gz", "-20260103"), (".2026-01-01T10:00:00", ".1.gz", ".0")],
)
def test_an_audit_log_that_was_rotated_is_read_with_the_files_it_was_rotated_to(
    tmp_path: Path, endings: tuple[str, ...]
) -> None:
    texts = [written(number, f"p/{number}") for number in range(4)]
    file = rotated(tmp_path, *zip((*endings, ""), texts, strict=True))

    assert [one.time for one in entries(file) if one.type == "write"] == [at(3), at(2), at(1), at(0)]


def test_a_response_after_the_rotation_belongs_to_the_write_before_it(tmp_path: Path) -> None:
    lines = written(1, "p/1").splitlines(keepends=True)
    file = rotated(tmp_path, (".1", "".join(lines[:2])), ("", "".join(lines[2:])))

    (write,) = [one for one in entries(file) if one.type == "write"]
    assert [one.status for one in write.requests or ()] == [200]


def test_files_beside_an_audit_log_that_are_others_are_not_read(tmp_path: Path) -> None:
    others = [(ending, written(1, "p/1")) for ending in (".bak", "2", ".1~", "-old.gz", ".1.xz", ".gz")]
    (tmp_path / "audit.log.7").mkdir()
    file = rotated(tmp_path, *others, ("", written(2, "p/2")))

    assert {one.time for one in entries(file)} == {at(2)}


def test_a_file_that_is_being_compressed_is_read_once(tmp_path: Path) -> None:
    file = rotated(tmp_path, (".1", written(1, "p/1")), (".1.gz", written(1, "p/1")), ("", ""))

    assert [one.type for one in entries(file)] == ["write", "step"]


def test_what_was_rotated_away_while_the_log_is_not_made_anew_yet_is_read(tmp_path: Path) -> None:
    rotated(tmp_path, (".1", written(1, "p/1")))

    assert {one.time for one in entries(tmp_path / "audit.log")} == {at(1)}


def test_of_rotated_files_no_more_than_the_newest_bytes_are_read(tmp_path: Path) -> None:
    newest = written(3, "p/3")
    file = rotated(tmp_path, (".2.gz", written(1, "p/1")), (".1", written(2, "p/2")), ("", newest))

    assert {one.time for one in entries(file, most_bytes=len(newest))} == {at(3)}
    assert {one.time for one in entries(file, most_bytes=len(newest) + 1)} == {at(3)}
    assert {one.time for one in entries(file, most_bytes=len(newest) * 2)} == {at(3), at(2)}
    assert {one.time for one in entries(file, most_bytes=len(newest) * 2 + 1)} == {at(3), at(2), at(1)}


@pytest.mark.laws
@given(st.data(), st.booleans())
def test_a_log_that_is_cut_off_anywhere_tells_of_the_whole_lines_before(
    data: st.DataObject, is_compressed: bool
) -> None:
    texts = "".join(line(second, "drift", {**SUBJECT, "fields": ["spec.website"]}) for second in range(20)).encode()
    whole = gzip.compress(texts, compresslevel=0) if is_compressed else texts
    cut = data.draw(st.integers(0, len(whole)))
    with tempfile.TemporaryDirectory() as folder:
        older = Path(folder, "audit.log.1.gz" if is_compressed else "audit.log.1")
        older.write_bytes(whole[:cut])
        Path(folder, "audit.log").write_text(written(30, "p/1"), encoding="utf-8")
        shown = [one.time for one in entries(Path(folder, "audit.log")) if one.type == "drift"]

    assert shown == [at(second) for second in range(len(shown))][::-1]
    # Of what is stored without compression, too, every byte before the cut is there.
    assert len(shown) >= whole[:cut].count(b"\n", 0 if not is_compressed else whole.index(texts[:20]))


@pytest.mark.laws
@given(st.binary(max_size=300), st.sampled_from(["", ".1", ".1.gz"]))
def test_whatever_bytes_an_audit_log_has_it_breaks_no_timeline(noise: bytes, ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "audit.log").write_text(written(30, "p/1"), encoding="utf-8")
        with Path(folder, f"audit.log{ending}").open("ab") as file:
            file.write(noise + b"\n" + written(1, "p/2").encode())

        assert at(30) in {one.time for one in entries(Path(folder, "audit.log"))}


def test_of_events_of_one_second_the_last_comes_first() -> None:
    events = [EventRecord(REF, "uid", "Normal", "Updated", f"{number}", at(number // 2)) for number in range(4)]

    found = timeline_of((), events, most=10, now=at(59))

    assert [one.text for one in found.entries] == ["Updated: 3", "Updated: 2", "Updated: 1", "Updated: 0"]


@pytest.mark.laws
@given(st.lists(st.integers(0, 59), min_size=1, max_size=20), st.integers(0, 59))
def test_a_drift_map_ends_now_and_has_every_drift(seconds: list[int], later: int) -> None:
    field = FieldChangeModel(path="spec.a")
    drifted: dict[str, Any] = {"type": "step", "who": "w", "text": "", "decision": "drifted", "fields": (field,)}
    drifts = [Entry(time=at(one), **drifted) for one in seconds]
    now = datetime(2026, 1, 1, 0, later, 59, tzinfo=UTC)
    found = merged_timeline(drifts, "", most=100, now=now.isoformat())

    assert [sum(one.buckets) for one in found.heat] == [len(seconds)]
    end = datetime.fromisoformat(str(found.bucket_start)) + timedelta(seconds=found.bucket_seconds * 24)
    assert end == now + timedelta(seconds=1)
    (heat,) = found.heat
    assert heat.buckets[-1] > 0 or later > 0
