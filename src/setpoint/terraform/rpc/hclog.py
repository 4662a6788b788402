"""Log records as hclog JSON lines on standard error, the format that Terraform parses."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

import msgspec

from setpoint.core.values.messages import printable

_LEVELS: Final = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "JSON": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "OFF": logging.CRITICAL,
}
_NAMES: Final = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warn"}
_RECORD_FIELDS: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "taskName"})


def configure(environment: Mapping[str, str], stream: TextIO) -> None:
    """Sends log records to `stream`: setpoint's own from the level of `TF_LOG`, those of libraries from WARNING."""
    level = environment.get("TF_LOG_PROVIDER") or environment.get("TF_LOG") or "WARN"
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_HclogFormatter())
    logging.getLogger().addHandler(handler)
    logging.getLogger("setpoint").setLevel(_LEVELS.get(level.upper(), logging.DEBUG))


class _HclogFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {key: value for key, value in vars(record).items() if key not in _RECORD_FIELDS}
        line = {
            "@level": _NAMES.get(record.levelno, "error"),
            "@message": record.getMessage(),
            "@module": record.name,
            "@timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            **fields,
        }
        # The class of an exception and not its message, which may hold a secret.
        if record.exc_info and record.exc_info[0] is not None:
            line["class"] = record.exc_info[0].__name__
        return printable(msgspec.json.encode(line, enc_hook=_type_name).decode())


def _type_name(value: object) -> str:
    return type(value).__name__
