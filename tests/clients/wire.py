"""Responses as bytes, valid ones of every framing; and a transport in memory for a connection."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st


class MemoryTransport(asyncio.Transport):
    """Records what is written, and whether reading is paused."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_paused = self.is_aborted = False
        self.unsent = 0

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


@dataclass(frozen=True, slots=True)
class WireResponse:
    """A valid response: as bytes, and as what it means."""

    head: bytes
    framed: bytes
    status: int
    fields: Sequence[tuple[str, str]]
    body: bytes
    # How it ends: by itself, or with the connection.
    is_until_close: bool
    is_kept: bool

    @property
    def wire(self) -> bytes:
        return self.head + self.framed


FIELD_NAMES = st.sampled_from(["X-A", "x-b", "Content-Type", "Date"])
FIELD_VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=8)


@st.composite
def wire_responses(draw: st.DrawFn) -> WireResponse:
    """Any valid response to a GET."""
    status = draw(st.sampled_from([200, 201, 204, 304, 404, 500, 599]))
    fields = draw(st.lists(st.tuples(FIELD_NAMES, FIELD_VALUES), max_size=4))
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    is_bodiless = status in (204, 304)
    body = b"" if is_bodiless else draw(st.binary(max_size=60))
    closes = draw(st.booleans())
    lines = [f"{name}:{draw(st.sampled_from(['', ' ', '   ']))}{value}" for name, value in fields]
    added: list[tuple[str, str]] = []
    if framing == "length" and not is_bodiless:
        added.append(("Content-Length", str(len(body))))
    if framing == "chunked" and not is_bodiless:
        added.append(("Transfer-Encoding", draw(st.sampled_from(["chunked", "Chunked"]))))
    if closes:
        added.append(("Connection", "close"))
    lines += [f"{name}: {value}" for name, value in added]
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"]))
    reason = draw(st.sampled_from([" OK", " Not Found", " ", ""]))
    head = f"HTTP/1.1 {status}{reason}\r\n{''.join(f'{line}' + chr(13) + chr(10) for line in lines)}\r\n"
    framed = _chunked(draw, body) if framing == "chunked" and not is_bodiless else body
    is_until_close = framing == "close" and not is_bodiless
    is_kept = not closes and not is_until_close
    return WireResponse(interim + head.encode(), framed, status, (*fields, *added), body, is_until_close, is_kept)


def _chunked(draw: st.DrawFn, body: bytes) -> bytes:
    parts, rest = [], body
    while rest:
        size = draw(st.integers(1, len(rest)))
        extension = draw(st.sampled_from([b"", b";a=b", b';a="b"']))
        parts.append(draw(st.sampled_from([b"%x", b"%X", b"0%x"])) % size + extension + b"\r\n" + rest[:size] + b"\r\n")
        rest = rest[size:]
    trailers = draw(st.sampled_from([b"", b"X-T: a\r\n", b"X-T: a\r\nX-U: b\r\n"]))
    return b"".join(parts) + b"0\r\n" + trailers + b"\r\n"


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The bytes in pieces, cut at these places, each modulo the length."""
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False) if start < end]
