"""Log records as hclog lines, which hold no message of an exception."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from setpoint.terraform.rpc import hclog


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root, own = logging.getLogger(), logging.getLogger("setpoint")
    before, level = list(root.handlers), own.level
    yield io.StringIO()
    root.handlers, own.level = before, level


def test_an_event_is_one_json_object_with_its_fields(stream: io.StringIO) -> None:
    hclog.configure({"TF_LOG_PROVIDER": "debug"}, stream)
    logging.getLogger("setpoint.probe").warning("event", extra={"count": 3, "odd": {1, 2}, "bad": object()})
    line = json.loads(stream.getvalue())

    assert line.pop("@timestamp").endswith("+00:00")
    assert (line.pop("odd"), line.pop("bad")) == ([1, 2], "object")
    assert line == {"@level": "warn", "@message": "event", "@module": "setpoint.probe", "count": 3}


def test_an_exception_is_logged_by_its_class_alone(stream: io.StringIO) -> None:
    hclog.configure({}, stream)
    try:
        _ = int("hunter2")
    except ValueError:
        logging.getLogger("elsewhere").exception("failed")

    assert json.loads(stream.getvalue())["class"] == "ValueError"
    assert "hunter2" not in stream.getvalue()


@pytest.mark.parametrize(
    ("environment", "levels"),
    [
        ({}, ["warn", "error"]),
        ({"TF_LOG": "info"}, ["info", "warn", "error"]),
        ({"TF_LOG": "trace", "TF_LOG_PROVIDER": "ERROR"}, ["error"]),
        ({"TF_LOG": "JSON"}, ["debug", "info", "warn", "error"]),
        ({"TF_LOG": "off"}, []),
        ({"TF_LOG": "whatever"}, ["debug", "info", "warn", "error"]),
    ],
)
def test_the_log_level_is_that_of_terraform(
    stream: io.StringIO, environment: dict[str, str], levels: list[str]
) -> None:
    hclog.configure(environment, stream)
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("setpoint.probe").log(level, "event")

    assert [json.loads(line)["@level"] for line in stream.getvalue().splitlines()] == levels
