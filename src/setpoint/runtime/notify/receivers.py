"""Who is told of problems: the addresses after `--notify`, in a file or in the environment."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import UserError
from setpoint.runtime.notify.messages import DEFAULT_SOURCE, MessageFormat
from setpoint.runtime.notify.problems import PROBLEMS, Problem

ADDRESSES_VARIABLE: Final = "SETPOINT_NOTIFY"
SECRET_VARIABLE: Final = "SETPOINT_NOTIFY_SECRET"
_SHAPE: Final = "FORMAT+https://host/path#on=failed,drift"
_FORMATS: Final = {one.value: one for one in MessageFormat}
_URI_REFERENCE: Final = re.compile(r"[!#$&-;=?-\[\]_a-z~A-Z0-9%]+")
_MIN_SECRET_BYTES: Final = 16
_MAX_FILE_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Receiver:
    """One receiver. `name` is for logs and metrics: an address may hold a token, and is shown nowhere."""

    name: str
    url: str
    format: MessageFormat
    problems: frozenset[Problem]
    source: str

    @property
    def id(self) -> str:
        """What the record of what was sent knows it by: the same as long as address and format are."""
        return digest([self.url, self.format.value])[:16]

    def __repr__(self) -> str:
        return f"<receiver {self.name}>"


def receivers_of(words: Sequence[str], environment: Mapping[str, str]) -> tuple[Receiver, ...]:
    """The receivers of a process: those after `--notify`, else those of the environment; UserError for a wrong one."""
    addresses = list(_addresses(words)) if words else environment.get(ADDRESSES_VARIABLE, "").split()
    found = tuple(_receiver(number, text) for number, text in enumerate(addresses, start=1))
    if len({one.id for one in found}) < len(found):
        raise UserError("--notify: two of the addresses are the same: every message would be sent twice")
    return found


def signing_secret(file: str | None, environment: Mapping[str, str]) -> bytes | None:
    """The secret that messages are signed with; None for no signature. UserError for one that protects nothing."""
    if file is not None:
        secret, where = _read(file, "--notify-secret-file").strip(), "--notify-secret-file"
    else:
        secret, where = os.fsencode(environment.get(SECRET_VARIABLE, "")).strip(), SECRET_VARIABLE
        if not secret:
            return None
    if len(secret) < _MIN_SECRET_BYTES:
        raise UserError(f"{where}: the secret has {len(secret)} bytes: take at least {_MIN_SECRET_BYTES} random ones")
    return secret


def _addresses(words: Iterable[str]) -> Iterator[str]:
    """The addresses: `@FILE` is a file with one in each line, which keeps them out of the list of processes."""
    for word in words:
        if not word.startswith("@"):
            yield word
            continue
        try:
            text = _read(word[1:], "--notify").decode()
        except UnicodeDecodeError:
            raise UserError(f"--notify: {word[1:]} is no text: write one address in each line") from None
        lines = [line.strip() for line in text.splitlines()]
        yield from (line for line in lines if line and not line.startswith("#"))


def _read(path: str, option: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UserError(f"{option}: {path} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise UserError(f"{option}: {path} is larger than {_MAX_FILE_BYTES:,} bytes")
    return content


def _receiver(number: int, text: str) -> Receiver:
    """Nothing of the address is repeated in an error but its scheme and its host: a token may be in it."""
    where = f"--notify: address {number}"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise UserError(f"{where} is no URL: {error}; write {_SHAPE}") from None
    word, _, scheme = parts.scheme.rpartition("+")
    if scheme not in ("http", "https"):
        raise UserError(f"{where} begins with {parts.scheme[:40]!r}: write {_SHAPE}")
    if word and word not in _FORMATS:
        raise UserError(f"{where}: {word[:40]!r} is no format: write {', '.join(_FORMATS)}, or none for webhook")
    if not host:
        raise UserError(f"{where} names no host: write {_SHAPE}")
    if parts.username is not None or parts.password is not None:
        raise UserError(f"{where}, of {host}, has a user or a password: take a token in the path, or the signature")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise UserError(f"{where}, of {host}, has characters that no URL has: percent-encode them")
    options = _options(parts.fragment, f"{where}, of {host}")
    url = text.partition("#")[0][len(word) + 1 if word else 0 :]
    return Receiver(f"{number} {host}", url, _FORMATS[word or MessageFormat.WEBHOOK.value], *options)


def _options(fragment: str, where: str) -> tuple[frozenset[Problem], str]:
    """What stands after `#`, which is never sent: the problems to tell of, and the source of events."""
    problems, source = frozenset(PROBLEMS), DEFAULT_SOURCE
    known = {one.value: one for one in PROBLEMS}
    for name, value in parse_qsl(fragment, keep_blank_values=True):
        if name == "on":
            words = value.split(",")
            if unknown := [word for word in words if word not in known]:
                raise UserError(f"{where}: {unknown[0][:40]!r} after on= is no problem: write {', '.join(known)}")
            problems = frozenset(known[word] for word in words)
        elif name == "source":
            if not _URI_REFERENCE.fullmatch(value):
                raise UserError(f"{where}: {value[:40]!r} after source= is no URI reference: write /clusters/eu")
            source = value
        else:
            raise UserError(f"{where}: {name[:40]!r} after # is unknown: write on=… or source=…")
    if fragment and not parse_qsl(fragment, keep_blank_values=True):
        raise UserError(f"{where}: {fragment[:40]!r} after # is unknown: write on=… or source=…")
    return problems, source
