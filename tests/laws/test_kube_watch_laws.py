"""Events of a watch do not depend on how the stream is split."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.kubernetes.watch import WatchEvent, WatchEventReader, WatchEventType
from setpoint.core.values.json_types import Json

pytestmark = pytest.mark.laws

# Bytes that resemble the end of a line or of an event, and are none.
AWKWARD: tuple[Json, ...] = (
    {},
    {"a": "\n"},
    {"a": "}\n{"},
    {"é": ["\u2028", "\U0001f600"]},
    {"a": {"b": {}}},
    {"a": "x" * 99},
)
OBJECTS = st.sampled_from([msgspec.json.encode(one) for one in AWKWARD])
EVENTS = st.lists(st.tuples(st.sampled_from(WatchEventType), OBJECTS), max_size=6)
CUTS = st.lists(st.integers(0, 800), max_size=8)


def lines_of(events: list[tuple[WatchEventType, bytes]]) -> bytes:
    return b"".join(b'{"type":"%s","object":%s}\n' % (change.encode(), one) for change, one in events)


def pieces_of(whole: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted(cut % (len(whole) + 1) for cut in cuts)
    return [whole[start:end] for start, end in pairwise([0, *places, len(whole)])]


def read(reader: WatchEventReader, pieces: list[bytes]) -> list[tuple[WatchEventType, bytes]]:
    events: list[WatchEvent] = [event for piece in pieces for event in reader.feed(piece)]
    return [(event.type, bytes(event.object)) for event in events]


@given(EVENTS, CUTS)
def test_events_do_not_depend_on_how_the_stream_is_split(
    events: list[tuple[WatchEventType, bytes]], cuts: list[int]
) -> None:
    assert read(WatchEventReader(), pieces_of(lines_of(events), cuts)) == events


@given(EVENTS, OBJECTS, st.integers(0, 800), CUTS)
def test_a_truncated_stream_gives_its_complete_events(
    events: list[tuple[WatchEventType, bytes]], last: bytes, end: int, cuts: list[int]
) -> None:
    begun = lines_of([(WatchEventType.ADDED, last)])
    half = begun[: end % len(begun)]

    assert read(WatchEventReader(), pieces_of(lines_of(events) + half, cuts)) == events


@given(EVENTS, st.sampled_from([b"", b"{", b"[]", b'{"type":"NEW","object":{}}', b"\xff"]), EVENTS)
def test_a_malformed_line_is_an_error_after_the_events_before_it(
    before: list[tuple[WatchEventType, bytes]], line: bytes, after: list[tuple[WatchEventType, bytes]]
) -> None:
    events = read(WatchEventReader(), [lines_of(before) + line + b"\n" + lines_of(after)])

    if line:
        assert events[:-1] == before
        assert events[-1][0] is WatchEventType.ERROR
    else:
        assert events == before + after
