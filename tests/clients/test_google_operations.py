"""Operations of Cloud SQL: running, done, failed."""

import msgspec
import pytest

from setpoint.clients.google.operations import sql_operation
from setpoint.errors import RemoteRefused, RemoteUnavailable


def operation(status: str, **more: object) -> bytes:
    known = {"kind": "sql#operation", "name": "op", "operationType": "UPDATE_DATABASE", "targetId": "main"}
    return msgspec.json.encode({**known, "status": status, **more})


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "SQL_OPERATION_STATUS_UNSPECIFIED"])
def test_an_operation_that_is_not_done_is_running(status: str) -> None:
    assert not sql_operation(operation(status)).is_done


def test_an_operation_that_is_done_has_succeeded() -> None:
    assert sql_operation(operation("DONE")).is_done


def test_an_operation_with_errors_is_remote_refused() -> None:
    problems = [{"code": "INTERNAL_ERROR", "message": "It broke."}, {"code": "OTHER", "message": "So did this."}]
    failed = sql_operation(operation("DONE", error={"errors": problems}))

    with pytest.raises(RemoteRefused) as caught:
        assert failed.is_done

    assert str(caught.value) == (
        "operation UPDATE_DATABASE on main failed: INTERNAL_ERROR: It broke.; OTHER: So did this."
    )


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}"])
def test_a_response_that_is_not_an_operation_is_unavailable(body: bytes) -> None:
    with pytest.raises(RemoteUnavailable):
        sql_operation(body)
