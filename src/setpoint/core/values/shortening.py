"""Shortened texts and values: what is kept in a status to be read by people has a size that no input decides."""

from typing import Final

from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.json_types import Json, Missing

# The most bytes of a message of a condition, and of an event.
MAX_MESSAGE_BYTES: Final = 2048
MAX_EVENT_BYTES: Final = 1024
_MAX_VALUE_BYTES: Final = 200
_BEGINNING: Final = 80
# Room for the note in the middle of a shortened text.
_NOTE_BYTES: Final = 48
# The text of a field without a value; values are JSON, in which text has quotes.
UNSET_TEXT: Final = "unset"
# Stands in plans for a value that the service will give: as Terraform has it.
KNOWN_LATER: Final = "(known after apply)"


def beginning(text: str, limit: int) -> str:
    """The longest beginning of `text` in at most `limit` bytes of UTF-8."""
    return _bytes(text)[:limit].decode("utf-8", "ignore")


def shorten(text: str, limit: int = MAX_MESSAGE_BYTES) -> str:
    """`text` in at most `limit` bytes of UTF-8: where it is longer, its middle is left out, and its size is noted."""
    encoded = _bytes(text)
    if len(encoded) <= limit:
        return text
    room = limit - _NOTE_BYTES
    end = encoded[-(room // 4) :].decode("utf-8", "ignore")
    return f"{beginning(text, room - room // 4)}… (shortened from {len(encoded):,} bytes) …{end}"


def short_value(value: Json | Missing) -> str:
    """A value on one line: as JSON, a long one by its beginning, size and digest; `unset` where there is none."""
    if isinstance(value, Missing):
        return UNSET_TEXT
    text = canonical(value)
    if len(text) <= _MAX_VALUE_BYTES:
        return text.decode()
    return f"{beginning(text.decode(), _BEGINNING)}… ({len(text)} bytes, SHA-256 {digest(value)[:12]}…)"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
