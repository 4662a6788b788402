"""The formats of a log line."""

import io
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.runtime.logs import LEVELS, LogFormat, configure, human_line, json_line

OURS = logging.getLogger("setpoint.test")


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    loggers = (logging.getLogger(), logging.getLogger("setpoint"))
    before = [(one, one.level, list(one.handlers)) for one in loggers]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


def _record(event: str = "step failed", /, **fields: object) -> logging.LogRecord:
    record = logging.makeLogRecord({"name": "setpoint.test", "levelno": 30, "levelname": "WARNING", "msg": event})
    record.created = 1_767_323_045.0678
    vars(record).update(fields)
    return record


def _logged(form: LogFormat, stream: io.StringIO, **fields: object) -> str:
    configure(form, logging.INFO, stream)
    OURS.info("step failed", extra=fields)
    return stream.getvalue()


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_a_json_line_has_time_level_event_logger_and_fields() -> None:
    line = json_line(_record(ref="Gadget default/g", seconds=1.5, paths=["spec.a"]))

    assert line == (
        '{"time":"2026-01-02T03:04:05.067Z","level":"warning","event":"step failed","logger":"setpoint.test",'
        '"ref":"Gadget default/g","seconds":1.5,"paths":["spec.a"]}'
    )


def test_an_exception_is_logged_with_its_type_and_its_traceback_as_one_text() -> None:
    stream = io.StringIO()
    configure(LogFormat.JSON, logging.INFO, stream)
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        OURS.exception("step broke")

    (line,) = stream.getvalue().splitlines()
    logged = json.loads(line)
    assert logged["exception"] == "ValueError"
    assert logged["traceback"].startswith("Traceback (most recent call last):\n")
    assert logged["traceback"].endswith("ValueError: first\nsecond")


def test_a_field_with_a_reserved_name_gets_an_underscore() -> None:
    logged = json.loads(json_line(_record(event="other", level="high")))

    assert (logged["level"], logged["level_"], logged["event_"]) == ("warning", "high", "other")


@dataclass
class Opaque:
    """Something that JSON does not know."""

    name: str


class Broken:
    """Something that cannot even be shown."""

    def __repr__(self) -> str:
        raise ValueError("no")


CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "logged"),
    [
        (Opaque("x"), "Opaque(name='x')"),
        (Broken(), "<Broken>"),
        ({1}, "{1}"),
        (2**70, "1180591620717411303424"),
        ("\ud800", "\\ud800"),
        (CYCLE, "[[...]]"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        ([Broken(), 1], ["<Broken>", 1]),
        ("line\nbreak", "line\nbreak"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_a_json_form_is_logged_as_its_repr(value: object, logged: object) -> None:
    line = json_line(_record(value=value, other=1))

    assert "\n" not in line
    assert (json.loads(line)["value"], json.loads(line)["other"]) == (logged, 1)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner),
    max_leaves=10,
)


@pytest.mark.laws
@given(event=st.text(st.characters()), value=ANYTHING)
def test_every_record_is_one_json_object_on_one_line(event: str, value: Any) -> None:
    record = _record(event, value=value)

    line = json_line(record)
    plain = human_line(record).plain

    assert list(json.loads(line)) == ["time", "level", "event", "logger", "value"]
    assert "\n" not in line
    assert plain.isprintable()


# --- Human ------------------------------------------------------------------------------------------------------------


def test_a_human_line_has_the_time_of_day_level_event_and_fields() -> None:
    line = human_line(_record(ref="Gadget default/g", seconds=1.5, why='no "x"', empty="")).plain

    there = time.strftime("%H:%M:%S", time.localtime(1_767_323_045))
    assert line == f'{there}.067 WARNING step failed ref="Gadget default/g" seconds=1.5 why="no \\"x\\"" empty=""'


def test_no_value_breaks_the_line_or_controls_the_terminal() -> None:
    line = human_line(_record("a\nb", value="x\x1b[31m\ny\u202e")).plain

    assert line.endswith(r'a\nb value="x\x1b[31m\ny\u202e"')


def test_a_traceback_is_below_the_human_line() -> None:
    stream = io.StringIO()
    configure(LogFormat.HUMAN, logging.INFO, stream)
    try:
        raise ValueError("first\nsecond \x1b[31m")
    except ValueError:
        OURS.exception("step broke")

    first, *below = stream.getvalue().splitlines()
    assert first.endswith("ERROR   step broke")
    assert below[0] == "    Traceback (most recent call last):"
    assert below[-2:] == ["    ValueError: first", r"    second \x1b[31m"]


def test_a_terminal_gets_colour_and_a_long_line_is_not_cut() -> None:
    shown = _logged(LogFormat.HUMAN, Terminal(), path="x" * 500)

    assert "\x1b[" in shown
    assert "x" * 500 in shown


# --- Configuration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "stream", "is_json"),
    [
        (LogFormat.AUTO, io.StringIO, True),
        (LogFormat.AUTO, Terminal, False),
        (LogFormat.JSON, Terminal, True),
        (LogFormat.HUMAN, io.StringIO, False),
    ],
)
def test_auto_is_human_on_a_terminal_and_json_elsewhere(
    form: LogFormat, stream: type[io.StringIO], is_json: bool
) -> None:
    assert _logged(form, stream()).startswith("{") is is_json


def test_a_stream_without_a_terminal_gets_no_colour() -> None:
    assert "\x1b" not in _logged(LogFormat.HUMAN, io.StringIO(), ref="x")


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_our_events_are_logged_from_the_level_on(level: str, count: int) -> None:
    stream = io.StringIO()
    configure(LogFormat.JSON, LEVELS[level], stream)
    for number in LEVELS.values():
        OURS.log(number, "something")

    assert len(stream.getvalue().splitlines()) == count


def test_libraries_are_logged_from_warnings_on() -> None:
    stream = io.StringIO()
    configure(LogFormat.JSON, logging.DEBUG, stream)
    library = logging.getLogger("some.library")
    library.debug("the token is %s", "x")
    library.warning("it is %s", "late")

    (line,) = stream.getvalue().splitlines()
    assert (json.loads(line)["event"], json.loads(line)["logger"]) == ("it is late", "some.library")


def test_a_second_configuration_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure(LogFormat.JSON, logging.INFO, first)
    configure(LogFormat.HUMAN, logging.INFO, second)
    OURS.info("once")

    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1
