"""What was asked of services and clusters, and what they answered: once for each question, as of one moment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from setpoint.clients.http import Answer, Request
from setpoint.clients.read_only import is_tried_out
from setpoint.core.canonical import digest
from setpoint.core.values import Json
from setpoint.errors import NotRecorded, RemoteError, RemoteRefused, RemoteUnavailable
from setpoint.worlds.veil import Veil

# What an answer is known by besides its status.
_HEADERS: Final = ("Content-Type",)
# Who we are, and how fast we may ask, is no part of the world.
_NOT_OF_THE_WORLD: Final = (401, 429)
_PLAIN: Final = "application/json"


class Question(NamedTuple):
    """What was asked, on which way out. `form` is the one that was asked for; `body` the digest of what was sent."""

    way: str
    method: str
    target: str
    form: str = _PLAIN
    body: str = ""

    def __str__(self) -> str:
        return f"{self.method} {urlsplit(self.target).path} ({self.way})"


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of it: an answer, its body as text, or as bytes where it is none; or a `failure`, and why."""

    status: int = 0
    headers: dict[str, str] = {}
    text: str = ""
    bytes_: bytes = msgspec.field(default=b"", name="bytes")
    failure: str = ""
    # Whether trying again could have helped.
    passing: bool = True


@dataclass(slots=True)
class Tape:
    """All questions and replies of one world."""

    replies: dict[Question, Reply] = field(default_factory=dict)
    # What is over the bodies of questions; they are over it already on a tape that was read.
    veil: Veil | None = None
    # What was asked of the environment, and what there was.
    environment: dict[str, str | None] = field(default_factory=dict)
    # What was asked of it in vain.
    missed: list[Question] = field(default_factory=list)

    def veiled(self) -> "Tape":
        """The same with nothing in it that nobody may see. Questions are known by what they say then, already."""
        veil = self.veil
        return Tape(self.replies if veil is None else {key: _veiled(one, veil) for key, one in self.replies.items()})


@dataclass(frozen=True, slots=True)
class Recorder:
    """A tap that keeps every answer. What was answered once is not asked again: the world is that of one moment."""

    way: str
    tape: Tape

    def asked(self, request: Request) -> Answer | None:
        """See Tap."""
        known = self.tape.replies.get(question(self.way, request, self.tape.veil))
        return None if known is None else _given(known)

    def answered(self, request: Request, answer: Answer) -> Answer:
        """See Tap. Of two who asked the same at once, both get what came first."""
        if answer.status in _NOT_OF_THE_WORLD:
            return answer
        return _given(self._kept(request, _reply(answer)))

    def failed(self, request: Request, error: RemoteError) -> None:
        """See Tap."""
        self._kept(request, Reply(failure=str(error), passing=isinstance(error, RemoteUnavailable)))

    def _kept(self, request: Request, reply: Reply) -> Reply:
        return self.tape.replies.setdefault(question(self.way, request, self.tape.veil), reply)


@dataclass(frozen=True, slots=True)
class Player:
    """A tap that answers from a tape, and never guesses: NotRecorded for what is not on it."""

    way: str
    tape: Tape

    def asked(self, request: Request) -> Answer | None:
        """See Tap."""
        key = question(self.way, request, self.tape.veil)
        known = self.tape.replies.get(key)
        if known is None:
            if not is_tried_out():
                self.tape.missed.append(key)
            raise NotRecorded(f"{key} was not asked when this world was recorded: record it again")
        return _given(known)

    def answered(self, request: Request, answer: Answer) -> Answer:
        """See Tap. Nobody is asked."""
        return answer

    def failed(self, request: Request, error: RemoteError) -> None:
        """See Tap. The same."""


def question(way: str, request: Request, veil: Veil | None) -> Question:
    """What `request` asks, wherever its server is. A body counts by what it says under the veil."""
    parts = urlsplit(request.url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    form = request.headers.get("Accept", _PLAIN)
    return Question(way, request.method, target, form, _trace(request.body, veil) if request.body else "")


def _trace(body: bytes, veil: Veil | None) -> str:
    said = _said(body)
    return digest(said if veil is None else veil.over(said))


def _said(body: bytes) -> Json:
    """What a body says; a text where it is no JSON."""
    try:
        found: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode(errors="replace")
    return found


def _reply(answer: Answer) -> Reply:
    headers = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
    try:
        return Reply(answer.status, headers, answer.body.decode())
    except UnicodeDecodeError:
        return Reply(answer.status, headers, bytes_=answer.body)


def _veiled(reply: Reply, veil: Veil) -> Reply:
    """The very same text where nothing in it has to be hidden."""
    said = _said(reply.text.encode())
    hidden = veil.over(said)
    if hidden == said:
        return reply
    return msgspec.structs.replace(reply, text=msgspec.json.encode(hidden).decode())


def _given(reply: Reply) -> Answer:
    if reply.failure:
        raise (RemoteUnavailable if reply.passing else RemoteRefused)(reply.failure)
    return Answer(reply.status, _AnyCase(reply.headers), reply.bytes_ or reply.text.encode())


@dataclass(frozen=True, slots=True)
class _AnyCase(Mapping[str, str]):
    """Headers, found in any case."""

    headers: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        for known, text in self.headers.items():
            if known.lower() == name.lower():
                return text
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.headers)

    def __len__(self) -> int:
        return len(self.headers)
