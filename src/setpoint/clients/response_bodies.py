"""Bodies of responses as their types."""

from typing import Any, Final, TypeVar

import msgspec

from setpoint.clients.foreign_errors import LONGEST_REASON, foreign_text
from setpoint.core.values.json_limits import MAX_VALUES, excess_of, excess_of_values
from setpoint.errors import RemoteUnavailable, ResponseTooLarge

T = TypeVar("T")

_object: Final = msgspec.json.Decoder(dict[str, Any])
# What a decoder raises for a body that is none of its type.
UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def decode_tree(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw, what: object) -> T:
    """See `decode_response`: a body without a type of its own, which is not nested too deeply."""
    if excess := excess_of(bytes(body)):
        raise RemoteUnavailable(f"{what}: the answer is not what it should be: it {excess}")
    return decode_response(decoder, body, what)


def decode_response(
    decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw, what: object, values: float = MAX_VALUES
) -> T:
    """The body as its type. RemoteUnavailable when it is not: nothing can be concluded from such a response.

    ResponseTooLarge when it would be too large as such.
    """
    if excess := excess_of_values(bytes(body), values):
        raise ResponseTooLarge(f"{what}: the answer is not what it should be: it {excess}")
    try:
        return decoder.decode(body)
    except UNDECODABLE as error:
        why = foreign_text(str(error), longest=LONGEST_REASON)
        raise RemoteUnavailable(f"{what}: the answer is not what it should be: {why}") from error


def decode_object(body: bytes | None, what: object) -> dict[str, Any]:
    """See `decode_response`: any object. An empty one where there is none."""
    return {} if body is None else decode_response(_object, body, what)
