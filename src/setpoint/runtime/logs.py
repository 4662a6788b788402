"""Logging of a long-running process: readable lines on a terminal, one JSON object a line elsewhere.

An event is a constant message with its fields in `extra`. No value of a field can break the format.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TextIO, assert_never

import orjson

from setpoint.core.values.messages import printable

if TYPE_CHECKING:
    from rich.text import Text

LEVELS: Final[Mapping[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
# The attributes of every log record; the rest are the fields of the event.
_STANDARD: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
_RESERVED: Final = frozenset({"time", "level", "event", "logger", "exception", "traceback", "stack"})
_ENCODING: Final = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_UTC_Z
_WORD: Final = re.compile(r"""[^\s="']+""")
_STYLES: Final = ((logging.ERROR, "bold red"), (logging.WARNING, "yellow"), (logging.INFO, "green"))


class LogFormat(StrEnum):
    """The format of a line; AUTO: human on a terminal, JSON elsewhere."""

    AUTO = "auto"
    HUMAN = "human"
    JSON = "json"


def configure(form: LogFormat, level: int, stream: TextIO) -> None:
    """Sends all log records to `stream`: those of setpoint from `level` on, those of libraries from warnings on.

    Libraries may log tokens and bodies at lower levels. A second call replaces the first.
    """
    # What no line shows: to find the caller of each event takes as long as all the rest of it.
    logging.logThreads = logging.logMultiprocessing = logging.logProcesses = False
    logging._srcfile = None  # documented in the logging HOWTO
    root = logging.getLogger()
    for handler in [one for one in root.handlers if isinstance(one, _HumanHandler | _JsonHandler)]:
        root.removeHandler(handler)
    root.addHandler(_handler(form, stream))
    root.setLevel(logging.WARNING)
    logging.getLogger("setpoint").setLevel(level)


def _handler(form: LogFormat, stream: TextIO) -> logging.Handler:
    match form:
        case LogFormat.AUTO:
            return _handler(LogFormat.HUMAN if stream.isatty() else LogFormat.JSON, stream)
        case LogFormat.HUMAN:
            return _HumanHandler(stream)
        case LogFormat.JSON:
            return _JsonHandler(stream)
        case _:
            assert_never(form)


# --- JSON -------------------------------------------------------------------------------------------------------------


class _JsonHandler(logging.StreamHandler[TextIO]):
    def format(self, record: logging.LogRecord) -> str:
        return json_line(record)


def json_line(record: logging.LogRecord) -> str:
    """The record as one JSON object, without a line break, and without what a terminal interprets."""
    return printable(_encoded({**_heading(record), **_fields(record), **_exception_fields(record)}).decode())


def _heading(record: logging.LogRecord) -> dict[str, object]:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": time, "level": record.levelname.lower(), "event": record.getMessage(), "logger": record.name}


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """The fields of the event; a reserved name gets an underscore."""
    found = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {f"{name}_" if name in _RESERVED else name: value for name, value in found.items()}


def _exception_fields(record: logging.LogRecord) -> dict[str, object]:
    found: dict[str, object] = {}
    if record.exc_info and record.exc_info[0] is not None:
        found["exception"] = record.exc_info[0].__qualname__
        found["traceback"] = logging.Formatter().formatException(record.exc_info)
    if record.stack_info:
        found["stack"] = record.stack_info
    return found


def _encoded(members: Mapping[str, object]) -> bytes:
    try:
        return orjson.dumps(members, default=_repr, option=_ENCODING)
    except TypeError:
        # A value that orjson rejects without asking `default`: a lone surrogate, a huge number, a cycle.
        sound = {_without_surrogates(name): _encodable(value) for name, value in members.items()}
        return orjson.dumps(sound, default=_repr, option=_ENCODING)


def _encodable(value: object) -> object:
    try:
        orjson.dumps(value, default=_repr, option=_ENCODING)
    except TypeError:
        return _without_surrogates(value if isinstance(value, str) else _repr(value))
    return value


def _without_surrogates(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a broken value must not drop the event
        return f"<{type(value).__name__}>"


# --- Human ------------------------------------------------------------------------------------------------------------


class _HumanHandler(logging.Handler):
    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        # Imported on use.
        from rich.console import Console

        self._console = Console(file=stream, highlight=False, soft_wrap=True)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._console.print(human_line(record))
        except Exception:  # noqa: BLE001 - as every handler does: logging reports it
            self.handleError(record)


def human_line(record: logging.LogRecord) -> "Text":
    """The record as a line: time of day, level, event, fields; a traceback on lines of its own below it."""
    from rich.text import Text

    time = datetime.fromtimestamp(record.created, UTC).astimezone().isoformat(timespec="milliseconds")[11:23]
    line = Text.assemble(
        (time, "dim"), " ", (f"{record.levelname:<7}", _style(record.levelno)), " ", _visible(record.getMessage())
    )
    for name, value in _fields(record).items():
        line.append(" ").append(f"{_visible(name)}=", "cyan").append(_shown(value))
    for text in _traceback_lines(record):
        line.append(f"\n    {_visible(text)}", "dim")
    return line


def _style(level: int) -> str:
    return next((style for least, style in _STYLES if level >= least), "dim")


def _traceback_lines(record: logging.LogRecord) -> Iterator[str]:
    fields = _exception_fields(record)
    for name in ("traceback", "stack"):
        yield from str(fields.get(name, "")).splitlines()


def _shown(value: object) -> str:
    """The value on one line; a text of several words is quoted."""
    if not isinstance(value, str):
        return _visible(_repr(value))
    return _visible(value) if _WORD.fullmatch(value) else '"' + _visible(value).replace('"', '\\"') + '"'


def _visible(text: str) -> str:
    """The text with control characters escaped: nothing moves the cursor, or changes colour or direction."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
