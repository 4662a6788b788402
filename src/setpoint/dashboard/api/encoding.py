"""The values of the API as JSON."""

from typing import Final

import msgspec


def _plain(value: object) -> str:
    """A text of a type of its own, such as a message with terms, as plain text: the encoder knows plain texts alone."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no value of the API")


encode: Final = msgspec.json.Encoder(enc_hook=_plain).encode
