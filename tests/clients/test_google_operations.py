"""Operations: running, done, failed."""

import msgspec
import pytest

from setpoint.clients.google.client import sql_operation
from setpoint.errors import RemoteRefused, RemoteUnavailable


def operation(status: str, **more: object) -> bytes:
    known = {"kind": "sql#operation", "name": "op", "operationType": "UPDATE_DATABASE", "targetId": "main"}
    return msgspec.json.encode({**known, "status": status, **more})


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "SQL_OPERATION_STATUS_UNSPECIFIED"])
def test_is_not_done_until_it_says_so(status: str) -> None:
    assert not sql_operation(operation(status)).is_done


def test_is_done_when_it_says_so() -> None:
    assert sql_operation(operation("DONE")).is_done


def test_one_that_ended_in_errors_failed() -> None:
    problems = [{"code": "INTERNAL_ERROR", "message": "It broke."}, {"code": "OTHER", "message": "So did this."}]
    failed = sql_operation(operation("DONE", error={"errors": problems}))

    with pytest.raises(RemoteRefused) as caught:
        assert failed.is_done

    assert str(caught.value) == (
        "operation UPDATE_DATABASE on main failed: INTERNAL_ERROR: It broke.; OTHER: So did this."
    )


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}"])
def test_an_answer_that_is_no_operation_says_nothing(body: bytes) -> None:
    with pytest.raises(RemoteUnavailable):
        sql_operation(body)
