"""The file of a recorded world: a header, then one line per resource and per response, compressed."""

import gzip
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from setpoint.clients.response_bodies import UNDECODABLE
from setpoint.core.values.canonical import MAX_DEPTH, canonical
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_limits import excess_of
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import UserError
from setpoint.replay.http_recording import HttpRecording, RecordedResponse, RequestKey

FORMAT: Final = 1
# How large a world may be: its lines in bytes, how many these are, and how many JSON values.
MAX_WORLD: Final = 256 * 2**20
_MAX_LINES: Final = 1_000_000
_MAX_VALUES: Final = 2_000_000
# In place of the method of a request: the cluster could not be opened. Earlier versions read such a line, too.
_OPEN: Final = "OPEN"
# Of gzip: what is decompressed at once.
_PIECE: Final = 2**20


class WorldHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """The origin of a world, and the number of its records: a truncated file is refused."""

    setpoint: str
    at: str
    store: str
    revision: str
    # Whether the store garbage-collects children, and whether its list is complete.
    collects: bool
    whole: bool
    # The default cluster.
    cluster: str = ""
    # The environment variables that were read, with their values.
    environment: dict[str, str | None] = {}
    resources: int = 0
    absent: int = 0
    answers: int = 0
    world: int = FORMAT


class _Format(Struct, frozen=True):
    """The members that headers of every format have."""

    world: int
    setpoint: str = "the version that made it"


class _ResourceLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A resource; `besides` if it was read by name, and not listed."""

    document: msgspec.Raw
    besides: bool = False


class _ObjectNames(Struct, frozen=True):
    name: str


class _ObjectHeading(Struct, frozen=True, rename="camel"):
    """What every object has. The file may have been edited."""

    api_version: str
    kind: str
    metadata: _ObjectNames


class _AbsentLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A resource that was read and did not exist."""

    group: str
    kind: str
    namespace: str
    name: str


class _ResponseLine(Struct, frozen=True, forbid_unknown_fields=True):
    way: str
    method: str
    target: str
    form: str
    body: str
    reply: RecordedResponse


@dataclass(frozen=True, slots=True)
class RecordedWorld:
    """One world: the content of its store, and the responses of services and clusters."""

    header: WorldHeader
    resources: tuple[Resource, ...]
    # The resources that were read by name and not listed, and those that did not exist.
    unlisted: frozenset[ResourceRef]
    absent: frozenset[ResourceRef]
    http_recording: HttpRecording


# --- Writing ----------------------------------------------------------------------------------------------------------


def pack_world(world: RecordedWorld) -> bytes:
    """The world as bytes: equal worlds have equal bytes. UserError for one that could not be read back."""
    lines = b"".join(b"%b\n" % msgspec.json.encode(one) for one in _lines(world))
    if excess := _excess_of_world(lines):
        raise UserError(f"the recorded world {excess}: record fewer resources")
    # Without a timestamp, so that the bytes are reproducible.
    return gzip.compress(lines, mtime=0)


def _lines(world: RecordedWorld) -> Iterator[Struct]:
    counts = {
        "resources": len(world.resources),
        "absent": len(world.absent),
        "answers": len(world.http_recording.responses) + len(world.http_recording.unopened),
    }
    yield msgspec.structs.replace(world.header, **counts)
    for resource in sorted(world.resources, key=lambda one: one.ref):
        yield _ResourceLine(msgspec.Raw(canonical(dict(resource.document))), resource.ref in world.unlisted)
    for ref in sorted(world.absent):
        yield _AbsentLine(*ref)
    recording = world.http_recording
    opening = {RequestKey(one, _OPEN, ""): _failure(why) for one, why in recording.unopened.items()}
    for question, reply in sorted({**recording.responses, **opening}.items(), key=lambda pair: pair[0]):
        yield _ResponseLine(*question, reply)


def _failure(why: str) -> RecordedResponse:
    return RecordedResponse(failure=why, passing=False)


# --- Reading ----------------------------------------------------------------------------------------------------------


def read_world(path: Path) -> RecordedWorld:
    """The world in a file; UserError says why it cannot be read."""
    try:
        with path.open("rb") as file:
            return unpack_world(file.read(MAX_WORLD + 1), str(path))
    except FileNotFoundError:
        raise UserError(f"{path} is not there: `setpoint record --to {path}` makes it") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a file that `setpoint record` made") from error


def unpack_world(world: bytes, path: str) -> RecordedWorld:
    """The world in the bytes of a file; UserError says why they cannot be read. `path` is for messages."""
    lines = _text(world, path).split(b"\n")
    try:
        _require_format(lines, path)
        header = msgspec.json.decode(lines[0], type=WorldHeader)
        announced, found = header.resources + header.absent + header.answers, len(lines) - 2
        if found != announced or lines[-1]:
            raise UserError(f"{path} breaks off: {announced} records should follow, and {found} do; record it again")
        return _world(header, lines[1:-1])
    except UNDECODABLE as error:
        raise UserError(f"{path} is no recorded world that can be read here: {error}; record it again") from error


def _text(world: bytes, path: str) -> bytes:
    text = bytearray()
    try:
        with gzip.GzipFile(fileobj=BytesIO(world)) as file:
            while (piece := file.read(_PIECE)) and len(text) <= MAX_WORLD:
                text += piece
    except EOFError:
        raise UserError(f"{path} breaks off: a part of a recorded world is of no use; record it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is no recorded world, or is damaged: {error}; `setpoint record` makes one") from error
    if excess := _excess_of_world(text):
        raise UserError(f"{path} {excess}: name another file")
    return bytes(text)


def _excess_of_world(lines: bytes | bytearray) -> str:
    """What is too much in a world, as the end of a sentence; empty for one within the limits."""
    if len(lines) > MAX_WORLD:
        return f"is larger than {MAX_WORLD // 2**20} MiB, decompressed"
    if lines.count(b"\n") > _MAX_LINES:
        return f"has more than {_MAX_LINES:,} lines"
    # A document is one level below its line.
    return excess_of(lines, _MAX_VALUES, MAX_DEPTH + 1)


def _require_format(lines: list[bytes], path: str) -> None:
    header = msgspec.json.decode(lines[0], type=_Format) if lines[0] else _Format(0)
    if header.world != FORMAT:
        raise UserError(f"{path}: a world of format {header.world} cannot be read here: use setpoint {header.setpoint}")


def _world(header: WorldHeader, lines: list[bytes]) -> RecordedWorld:
    kept, rest = lines[: header.resources], lines[header.resources :]
    gone, answered = rest[: header.absent], rest[header.absent :]
    documents = [_document(line) for line in kept]
    absent = (msgspec.json.decode(line, type=_AbsentLine) for line in gone)
    responses = [msgspec.json.decode(line, type=_ResponseLine) for line in answered]
    return RecordedWorld(
        header,
        tuple(one for one, _ in documents),
        frozenset(one.ref for one, is_unlisted in documents if is_unlisted),
        frozenset(ResourceRef(one.group, one.kind, one.namespace, one.name) for one in absent),
        HttpRecording(
            {
                RequestKey(one.way, one.method, one.target, one.form, one.body): one.reply
                for one in responses
                if one.method != _OPEN
            },
            unopened={one.way: one.reply.failure for one in responses if one.method == _OPEN},
        ),
    )


def _document(line: bytes) -> tuple[Resource, bool]:
    kept = msgspec.json.decode(line, type=_ResourceLine)
    msgspec.json.decode(kept.document, type=_ObjectHeading)
    return Resource(msgspec.json.decode(kept.document, type=dict[str, Any])), kept.besides
