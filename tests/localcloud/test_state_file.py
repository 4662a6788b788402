"""The state file: a local cloud that is restarted keeps its state."""

from datetime import timedelta
from pathlib import Path

import pytest

from setpoint.errors import UserError
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.cloud import Cloud
from tests.localcloud.requests import BUCKET, DB, INSTANCES, MYSQL, START, create, get, make_bucket, ok


def _start(file: Path, clock: CloudClock | None = None) -> Cloud:
    return Cloud(clock=clock or CloudClock(START), state_file=file, operation_seconds=10)


def test_everything_survives_a_restart(tmp_path: Path) -> None:
    first = _start(tmp_path / "state.json")
    live = create(first, {**MYSQL, "rootPassword": "hunter2"})
    bucket = make_bucket(first)
    second = _start(tmp_path / "state.json")

    assert (get(second, DB), get(second, BUCKET)) == (live, bucket)
    assert second.password_matches("acme", "db", "root", "hunter2")


def test_a_running_operation_survives_a_restart(tmp_path: Path) -> None:
    operation = ok(_start(tmp_path / "state.json").call("POST", INSTANCES, MYSQL))
    second = _start(tmp_path / "state.json")
    meanwhile = get(second, DB)["state"]
    second.advance(10)

    assert meanwhile == "PENDING_CREATE"
    assert get(second, f"/sql/v1beta4/projects/acme/operations/{operation['name']}")["status"] == "DONE"
    assert get(second, DB)["state"] == "RUNNABLE"


def test_time_does_not_run_backwards_over_a_restart(tmp_path: Path) -> None:
    first = _start(tmp_path / "state.json")
    first.advance(3600)
    first.save()

    assert _start(tmp_path / "state.json", CloudClock(START)).clock.now() == START + timedelta(hours=1)


def test_no_password_is_in_the_file_and_no_other_file_is_left(tmp_path: Path) -> None:
    create(_start(tmp_path / "state.json"), {**MYSQL, "rootPassword": "hunter2"})

    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]
    assert b"hunter2" not in (tmp_path / "state.json").read_bytes()


@pytest.mark.parametrize("content", ["", "[]", '{"sql": 5}', '{"format": 99}'])
def test_a_file_that_is_no_state_is_an_error_and_stays_unchanged(tmp_path: Path, content: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(UserError, match=r"state\.json"):
        _start(file)
    assert file.read_text(encoding="utf-8") == content


def test_a_reset_removes_everything(tmp_path: Path) -> None:
    cloud = _start(tmp_path / "state.json")
    create(cloud)
    cloud.reset()

    assert cloud.call("GET", DB).status == 404
    assert _start(tmp_path / "state.json").call("GET", DB).status == 404
