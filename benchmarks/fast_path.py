"""Comparisons: the decision whether an object is in sync, from the bytes of a response."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Final

import orjson

from benchmarks import sql_instance
from benchmarks.comparison import Candidate, Comparison, check_results
from benchmarks.peer_packages import Differ, Peers
from setpoint.core.decide import Cookie, Decision, decide
from setpoint.core.schema.policy import IGNORE
from setpoint.core.values.canonical import digest, sha256_hex
from setpoint.core.values.json_types import Json

SUBJECT: Final = "fast-path decision, from response bytes"
FLOOR: Final = "orjson.loads + SHA-256 of the bytes"
DEEPDIFF: Final = "orjson.loads + deepdiff"


def comparisons(peers: Peers) -> Iterator[Comparison]:
    """An unchanged object in each size. It is checked first that every candidate detects a changed one."""
    for size in sql_instance.SIZES:
        body = sql_instance.body_of(size)
        drifted = sql_instance.with_other_flag(size).body
        check_results(Comparison(SUBJECT, size.label, _candidates(drifted, body, peers)))
        yield Comparison(SUBJECT, size.label, _candidates(body, body, peers))


def cookie_bytes() -> int:
    """The size of a cookie, of which the status of each resource holds one."""
    return len(str(_cookie_for(sql_instance.body_of(sql_instance.SIZES[0]))).encode())


def _cookie_for(body: bytes) -> Cookie:
    intent = digest(sql_instance.declared_of(body, IGNORE).tree)
    return Cookie(intent, digest(sql_instance.decode(body)))


def _candidates(body: bytes, last_body: bytes, peers: Peers) -> tuple[Candidate, ...]:
    cookie, last_digest, last_tree = _cookie_for(last_body), sha256_hex(last_body), orjson.loads(last_body)
    intent = cookie.intent
    is_same = body == last_body
    decision = Decision.IN_SYNC if is_same else Decision.DRIFTED

    def decode_and_decide() -> Decision:
        return decide(cookie, intent, digest(sql_instance.decode(body)))

    def body_digest() -> Decision:
        return decide(cookie, intent, cookie.live) if sha256_hex(body) == last_digest else decode_and_decide()

    def floor() -> tuple[Json, bool]:
        return orjson.loads(body), hashlib.sha256(body).hexdigest() == last_digest

    return (
        Candidate("ours: decoded, digest, decide", decode_and_decide, lambda result: result is decision),
        Candidate("ours: the body's digest is the last one", body_digest, lambda result: result is decision),
        Candidate(FLOOR, floor, lambda result: result == (orjson.loads(body), is_same)),
        *(
            Candidate(
                f"orjson.loads + {peer.name}",
                _comparison_with(peer, last_tree, body),
                lambda result: (not result) is is_same,
            )
            for peer in peers.differs
        ),
    )


def _comparison_with(differ: Differ, last_tree: Json, body: bytes) -> Callable[[], object]:
    return lambda: differ.compare(last_tree, orjson.loads(body))
