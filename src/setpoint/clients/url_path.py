"""Segments of URL paths, quoted. A segment that could lead to another path than the intended one is refused.

Servers and proxies resolve `.` and `..` (dot segments, RFC 3986 section 3.3), some of them after they decoded the path:
the name of one object would become the path of another.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus, unquote, urlsplit

from setpoint.errors import ManifestInvalid, RemoteRefused

# No name of a service is longer. The limit also bounds what it takes to decode a text again and again.
MAX_SEGMENT_CHARS: Final = 1024
_PLAIN: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9_.~-]{1,1024}").fullmatch
_PLAIN_QUERY: Final = re.compile(r"[A-Za-z0-9_.~/-]*").fullmatch
_SEPARATORS: Final = re.compile(r"[/\\]")
# What a URL with a dot segment contains.
_SUSPECT: Final = re.compile(r"[/\\]\.|%").search


def quote_segment(segment: str) -> str:
    """One segment, quoted; ManifestInvalid for one that is empty, too long, or has a dot segment at any depth."""
    # Most need no quotes, and a match is cheaper than `quote`.
    return segment if _PLAIN(segment) else _quoted(segment, _SEPARATORS.split(_decoded(segment)))


def quote_object_name(name: str) -> str:
    """The name of an object in a bucket as one segment: `a/../b` is a name like any other there, `..` is none."""
    return name if _PLAIN(name) else _quoted(name, (_decoded(name),))


def join_path(segments: Iterable[str]) -> str:
    """The path with these segments, each quoted."""
    return "".join([f"/{one if _PLAIN(one) else quote_segment(one)}" for one in segments])


def encode_query(query: Mapping[str, str]) -> str:
    """The query of a URL, quoted; ManifestInvalid for text with a lone surrogate, which has no bytes."""
    try:
        return "&".join([f"{_query_word(name)}={_query_word(value)}" for name, value in query.items()])
    except UnicodeEncodeError as error:
        raise ManifestInvalid(f"{error.object[:80]!r} cannot be a part of a URL: it is not valid Unicode") from None


def _query_word(text: str) -> str:
    # Of most no more than a slash is quoted, and a match is cheaper than `quote_plus`.
    return text.replace("/", "%2F") if _PLAIN_QUERY(text) else quote_plus(text)


def has_dot_segment(text: str) -> bool:
    """Whether `text`, decoded as often as it can be, has a dot segment; so it is taken for one that is too long."""
    if _PLAIN(text):
        return False
    return len(text) > MAX_SEGMENT_CHARS or not {".", ".."}.isdisjoint(_SEPARATORS.split(_decoded(text)))


def refuse_dot_segments(url: str) -> None:
    """RemoteRefused for a complete URL whose path has a dot segment: an address in a setting may have one, too."""
    if _SUSPECT(url.partition("?")[0]) is None:
        return
    path = urlsplit(url).path
    # A quoted slash does not separate segments: the name of an object in a bucket may have one.
    if any(_decoded(segment) in (".", "..") for segment in _SEPARATORS.split(path)):
        raise RemoteRefused(f"{path!r} was not sent: a path with '.' or '..' in it leads elsewhere; name it without")


def _decoded(text: str) -> str:
    """The text after every layer of percent-encoding is removed."""
    if len(text) > MAX_SEGMENT_CHARS:
        return text
    while (once := unquote(text)) != text:
        text = once
    return text


def _quoted(segment: str, parts: Iterable[str]) -> str:
    try:
        if segment and len(segment) <= MAX_SEGMENT_CHARS and {".", ".."}.isdisjoint(parts):
            return quote(segment, safe="")
    except UnicodeEncodeError:
        # A lone surrogate has no bytes.
        pass
    raise ManifestInvalid(
        f"{segment[:80]!r} cannot be a part of a URL: write a name, with neither '.' nor '..' as a part of it"
    )
