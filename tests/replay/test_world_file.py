"""A recorded world in a file: complete, or an error that says so."""

import asyncio
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import canonical
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import UserError
from setpoint.replay.http_recording import HttpRecording, RecordedResponse, RequestKey
from setpoint.replay.world_file import RecordedWorld, WorldHeader, pack_world, read_world, unpack_world
from tests.laws.json_values import json_values, text

HEADER = WorldHeader("1.2.3", "2026-01-01T00:00:00Z", "sqlite", "7", collects=False, whole=True, cluster="context:a")
refs = st.builds(ResourceRef, st.just("g"), st.just("Kind"), st.just("default"), st.sampled_from("abcdef"))


def _resource(ref: ResourceRef, spec: object) -> Resource:
    metadata = {"namespace": ref.namespace, "name": ref.name}
    return Resource({"apiVersion": "g/v1", "kind": "Kind", "metadata": metadata, "spec": spec})  # type: ignore[dict-item] # any value


replies = st.builds(
    RecordedResponse,
    st.integers(100, 599),
    st.dictionaries(text, text, max_size=2),
    text,
    st.binary(max_size=8),
    text,
    st.booleans(),
)
questions = st.builds(RequestKey, text, text, text, text, text)


@st.composite
def worlds(draw: st.DrawFn) -> RecordedWorld:
    """Any world."""
    specs = draw(st.dictionaries(refs, json_values, max_size=4))
    resources = tuple(_resource(ref, spec) for ref, spec in sorted(specs.items()))
    besides = frozenset(draw(st.sets(st.sampled_from(sorted(specs))))) if specs else frozenset()
    absent = draw(st.frozensets(refs, max_size=3))
    recording = HttpRecording(
        draw(st.dictionaries(questions, replies, max_size=4)),
        unopened=draw(st.dictionaries(text, text, max_size=2)),
    )
    return RecordedWorld(HEADER, resources, besides, absent, recording)


WORLD = RecordedWorld(
    HEADER,
    (_resource(ResourceRef("g", "Kind", "default", "a"), {"size": 2**70}),),
    frozenset(),
    frozenset({ResourceRef("", "Secret", "default", "s")}),
    HttpRecording({RequestKey("google", "GET", "/b"): RecordedResponse(200, {}, "{}")}),
)


@given(worlds())
def test_a_packed_world_is_unpacked_as_it_was(world: RecordedWorld) -> None:
    read = unpack_world(pack_world(world), "w")

    assert [canonical(one.document) for one in read.resources] == [canonical(one.document) for one in world.resources]
    assert (read.unlisted, read.absent) == (world.unlisted, world.absent)
    assert read.http_recording.responses == world.http_recording.responses
    assert read.http_recording.unopened == world.http_recording.unopened
    assert (read.header.setpoint, read.header.at, read.header.cluster) == ("1.2.3", "2026-01-01T00:00:00Z", "context:a")
    assert pack_world(read) == pack_world(world)


def test_a_truncated_file_is_refused() -> None:
    whole = pack_world(WORLD)
    for length in range(len(whole)):
        with pytest.raises(UserError, match=r"^w (breaks off|is no recorded world)|^w: a world of format 0"):
            unpack_world(whole[:length], "w")


def test_a_file_with_a_missing_line_is_refused() -> None:
    lines = gzip.decompress(pack_world(WORLD)).splitlines(keepends=True)
    for number in range(1, len(lines)):
        with pytest.raises(UserError, match="w breaks off: 3 records should follow, and 2 do; record it again"):
            unpack_world(gzip.compress(b"".join(lines[:number] + lines[number + 1 :])), "w")


@given(st.data())
def test_a_damaged_file_is_refused(data: st.DataObject) -> None:
    whole = bytearray(pack_world(WORLD))
    # After the gzip header, which does not depend on the world.
    at = data.draw(st.integers(10, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(UserError):
        unpack_world(bytes(whole), "w")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "breaks off|is no recorded world|format 0"),
        (b"apiVersion: v1\n", "is no recorded world, or is damaged"),
        (gzip.compress(b""), "a world of format 0 cannot be read here"),
        (gzip.compress(b'{"world": 2, "setpoint": "9.9", "new": 1}\n'), "a world of format 2 .* use setpoint 9.9"),
        (gzip.compress(b'{"world": 1}\n'), "is no recorded world that can be read here"),
        (gzip.compress(b"[]\n"), "is no recorded world that can be read here"),
    ],
    ids=["nothing", "a manifest", "no header", "another format", "half a header", "a list"],
)
def test_the_error_says_what_is_wrong_with_the_file(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "w").write_bytes(content)

    with pytest.raises(UserError, match=message):
        read_world(tmp_path / "w")


def test_a_file_that_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not there: `setpoint record --to .*` makes it"):
        read_world(tmp_path / "none")
    with pytest.raises(UserError, match="name a file that `setpoint record` made"):
        read_world(tmp_path)


def test_a_world_file_is_read_back_as_written(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(pack_world(WORLD))

    assert read_world(tmp_path / "w").http_recording == WORLD.http_recording


def test_the_fixed_clock_has_a_fixed_time_and_a_running_monotonic_clock() -> None:
    from setpoint.replay.snapshot import FixedClock

    clock = FixedClock("2026-01-01T00:00:00Z")

    asyncio.run(clock.sleep(0))
    assert clock.now() == "2026-01-01T00:00:00Z"
    assert clock.monotonic() <= clock.monotonic()
