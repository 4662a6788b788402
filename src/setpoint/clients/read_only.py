"""Ways out through which nothing can be written: what tries to is stopped on the last step, and put on record."""

import re
from collections.abc import Iterator
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from setpoint.clients.callers import caller
from setpoint.clients.http import Answer, Request, Tap
from setpoint.core.diff import REDACTED
from setpoint.core.paths import Path
from setpoint.core.values import Json
from setpoint.errors import RemoteError, WriteBlocked

_READING: Final = ("GET", "HEAD")
_TOP: Final = Path()
# Names of members whose values nobody may see, whatever is around them.
_SECRET_NAME: Final = re.compile(r"passw|secret|token|credential|private_?key|api_?key|kubeconfig", re.IGNORECASE)
# In a Secret, and in kubectl's copy of one.
_SECRET_MEMBERS: Final = ("data", "stringData", "annotations")


@dataclass(frozen=True, slots=True)
class BlockedWrite:
    """A write that did not go out. `way` is the service or cluster, `caller` the resource on whose behalf it was tried.

    The body has nothing in it that nobody may see; `fields` are the places that it would have set.
    """

    way: str
    method: str
    target: str
    caller: str
    body: Json = None
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.method} {self.target} ({self.way})"


_trial: Final[ContextVar[list[BlockedWrite] | None]] = ContextVar("trial", default=None)


class tried_out:  # noqa: N801 - a context manager is called like a function
    """What is stopped inside is what somebody wants to see, and no offence: it goes on a list of its own."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: Token[list[BlockedWrite] | None] | None = None

    def __enter__(self) -> list[BlockedWrite]:
        stopped: list[BlockedWrite] = []
        self._token = _trial.set(stopped)
        return stopped

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _trial.reset(self._token)


def is_tried_out() -> bool:
    """Whether this is no more than a trial."""
    return _trial.get() is not None


@dataclass(slots=True)
class Blocks:
    """All writes that were stopped, on any way out, in order; but for those that were only tried out."""

    writes: list[BlockedWrite] = field(default_factory=list)

    def stop(self, way: str, method: str, target: str, body: Json = None) -> WriteBlocked:
        """What to raise in the place of the write."""
        who = caller.get()
        hidden = redacted(body)
        fields = tuple(str(path) for path, _ in leaves(hidden))
        write = BlockedWrite(way, method, target, "" if who is None else str(who.key), hidden, fields)
        trial = _trial.get()
        (self.writes if trial is None else trial).append(write)
        return WriteBlocked(f"{write}: nothing may be written here; a preview only looks")


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """A tap that lets reads pass, and what a cluster only rehearses; and hands them on to the tap behind it, if any."""

    way: str
    blocks: Blocks
    is_cluster: bool = False
    behind: Tap | None = None

    def asked(self, request: Request) -> Answer | None:
        """See Tap."""
        if not (request.method in _READING or (self.is_cluster and is_rehearsal(request))):
            raise self.blocks.stop(self.way, request.method, urlsplit(request.url).path, _decoded(request.body))
        return None if self.behind is None else self.behind.asked(request)

    def answered(self, request: Request, answer: Answer) -> Answer:
        """See Tap."""
        return answer if self.behind is None else self.behind.answered(request, answer)

    def failed(self, request: Request, error: RemoteError) -> None:
        """See Tap."""
        if self.behind is not None:
            self.behind.failed(request, error)


def is_rehearsal(request: Request) -> bool:
    """Whether a cluster would do all of it but keep it: by the query, or for a deletion by its body."""
    asked = [value for name, value in parse_qsl(urlsplit(request.url).query) if name == "dryRun"]
    if request.method == "DELETE" and not asked:
        body = _decoded(request.body)
        said = body.get("dryRun") if isinstance(body, dict) else None
        asked = list(map(str, said)) if isinstance(said, list) else []
    return asked == ["All"]


def redacted(body: Json) -> Json:
    """`body` without what nobody may see: told by the names of members, for no type is known here."""
    if isinstance(body, dict) and body.get("kind") == "Secret":
        return {name: REDACTED if name in _SECRET_MEMBERS else redacted(value) for name, value in body.items()}
    if isinstance(body, dict):
        return {
            name: REDACTED if _SECRET_NAME.search(name) and _holds_text(value) else redacted(value)
            for name, value in body.items()
        }
    return [redacted(entry) for entry in body] if isinstance(body, list) else body


def _holds_text(value: Json) -> bool:
    """Whether there is anything to hide: a reference to a Secret is none."""
    if isinstance(value, dict):
        return False
    return bool(value) and not isinstance(value, bool)


def leaves(body: Json, at: Path = _TOP) -> Iterator[tuple[Path, Json]]:
    """The places that a body sets, and to what; a list is set as a whole."""
    if not isinstance(body, dict) or not body:
        if at.steps:
            yield at, body
        return
    for name, member in body.items():
        yield from leaves(member, at / name)


def _decoded(body: bytes | None) -> Json:
    if not body:
        return None
    try:
        found: Json = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return f"({len(body)} bytes)"
    return found
