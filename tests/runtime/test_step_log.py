"""The log of a running process: a line for each write, each drift and each refusal."""

import logging
from typing import Any

import pytest

from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action
from setpoint.core.schema.policy import Rule
from setpoint.core.values.paths import Path
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import ReportedWrite, StepSubject
from setpoint.errors import ImmutableFieldChanged, RemoteUnavailable
from setpoint.runtime.step_log import StepLog, named_fields

REF = ResourceRef("storage.example", "Bucket", "default", "logs")
SUBJECT = StepSubject(REF, "a change of its spec", 3)


def _write(*paths: str) -> ReportedWrite:
    changes = tuple(FieldChange(Path.parse(path), 1, 2, Rule.SPEC) for path in paths)
    return ReportedWrite(SUBJECT, Action.UPDATE, "b/logs", "drifted", changes)


def _lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, Any]]:
    return [(record.getMessage(), vars(record).get("fields")) for record in caplog.records]


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "setpoint")


def test_a_write_is_logged_once_it_was_accepted(caplog: pytest.LogCaptureFixture) -> None:
    log = StepLog()

    with log.writing([_write("spec.a", "spec.b")]):
        assert _lines(caplog) == []

    assert _lines(caplog) == [("written", ["spec.a", "spec.b"])]
    line = vars(caplog.records[0])
    assert (line["ref"], line["trigger"], line["action"]) == (str(REF), "a change of its spec", "update")
    assert (line["target"], line["why"]) == ("b/logs", "drifted")


def test_a_write_that_failed_is_not_logged_as_written(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RemoteUnavailable), StepLog().writing([_write("spec.a")]):
        raise RemoteUnavailable("down")

    assert _lines(caplog) == []


def test_drift_that_stays_is_logged_once_and_again_when_it_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    log = StepLog()

    for fields in (["spec.a"], ["spec.a"], ["spec.a", "spec.b"], [], [], ["spec.a"]):
        log.drift(SUBJECT, fields)
    with log.writing([_write("spec.a")]):
        pass
    log.drift(SUBJECT, ["spec.a"])

    expected = [["spec.a"], ["spec.a", "spec.b"], ["spec.a"], ["spec.a"]]
    assert [fields for event, fields in _lines(caplog) if event == "drift found"] == expected


def test_an_object_that_another_writer_deleted_is_drift(caplog: pytest.LogCaptureFixture) -> None:
    StepLog().drift(SUBJECT, [], is_deleted=True)

    assert _lines(caplog) == [("object deleted by another writer", [])]


def test_a_refusal_is_a_warning_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    StepLog().refused(SUBJECT, ImmutableFieldChanged("spec.location cannot change"))

    line = vars(caplog.records[0])
    assert (line["levelname"], line["msg"], line["error"]) == ("WARNING", "refused", "ImmutableFieldChanged")
    assert line["why"] == "spec.location cannot change"


def test_a_line_names_fifty_fields_and_counts_the_rest() -> None:
    named = named_fields([f"spec.a{number}" for number in range(60)])

    assert len(named) == 51
    assert named[49:] == ["spec.a49", "and 10 more"]
