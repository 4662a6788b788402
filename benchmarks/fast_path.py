"""Contests: is the object as it was when intent and live last agreed? From the bytes of a response."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Final

import orjson

from benchmarks import sql_instance
from benchmarks.measuring import Contest, Contestant, check_agreement
from benchmarks.opponents import Differ, Opponents
from setpoint.core.decide import Cookie, Decision, decide
from setpoint.core.schema.policy import IGNORE
from setpoint.core.values.canonical import digest, sha256_hex
from setpoint.core.values.json_types import Json

SUBJECT: Final = "fast-path decision, from response bytes"
FLOOR: Final = "orjson.loads + SHA-256 of the bytes"
DEEPDIFF: Final = "orjson.loads + deepdiff"


def contests(opponents: Opponents) -> Iterator[Contest]:
    """An object that did not move, in each size. Every contestant has shown that it notices one that did."""
    for size in sql_instance.SIZES:
        body = sql_instance.body_of(size)
        moved = sql_instance.with_other_flag(size).body
        check_agreement(Contest(SUBJECT, size.label, _contestants(moved, body, opponents)))
        yield Contest(SUBJECT, size.label, _contestants(body, body, opponents))


def cookie_bytes() -> int:
    """How much is kept for each resource."""
    return len(str(_cookie_for(sql_instance.body_of(sql_instance.SIZES[0]))).encode())


def _cookie_for(body: bytes) -> Cookie:
    intent = digest(sql_instance.declared_of(body, IGNORE).tree)
    return Cookie(intent, digest(sql_instance.decode(body)))


def _contestants(body: bytes, state: bytes, opponents: Opponents) -> tuple[Contestant, ...]:
    cookie, last, tree = _cookie_for(state), sha256_hex(state), orjson.loads(state)
    intent = cookie.intent
    is_same = body == state
    decision = Decision.IN_SYNC if is_same else Decision.DRIFTED

    def typed() -> Decision:
        return decide(cookie, intent, digest(sql_instance.decode(body)))

    def short_cut() -> Decision:
        return decide(cookie, intent, cookie.live) if sha256_hex(body) == last else typed()

    def floor() -> tuple[Json, bool]:
        return orjson.loads(body), hashlib.sha256(body).hexdigest() == last

    return (
        Contestant("ours: decoded, digest, decide", typed, lambda found: found is decision),
        Contestant("ours: the body's digest is the last one", short_cut, lambda found: found is decision),
        Contestant(FLOOR, floor, lambda found: found == (orjson.loads(body), is_same)),
        *(
            Contestant(f"orjson.loads + {one.name}", _comparing(one, tree, body), lambda found: (not found) is is_same)
            for one in opponents.differs
        ),
    )


def _comparing(differ: Differ, state: Json, body: bytes) -> Callable[[], object]:
    return lambda: differ.compare(state, orjson.loads(body))
