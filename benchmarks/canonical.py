"""Comparisons: the canonical bytes of a value, and their digest."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import orjson

from benchmarks import sql_instance
from benchmarks.comparison import Candidate, Comparison
from benchmarks.peer_packages import Peers
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json

SUBJECT: Final = "canonical bytes + SHA-256"
EXACT_SUBJECT: Final = "canonical bytes + SHA-256: a float, astral keys"

_as_text: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def comparisons(peers: Peers) -> Iterator[Comparison]:
    """A decoded tree in each size, and one with values that only the exact route of `digest` writes correctly."""
    for size in sql_instance.SIZES:
        body = sql_instance.body_of(size)
        yield Comparison(SUBJECT, size.label, _candidates(orjson.loads(body), peers, is_exact=False))
    medium = sql_instance.SIZES[1]
    tree = sql_instance.with_float_and_astral_keys(sql_instance.body_of(medium))
    yield Comparison(EXACT_SUBJECT, medium.label, _candidates(tree, peers, is_exact=True))


def _candidates(tree: Json, peers: Peers, *, is_exact: bool) -> tuple[Candidate, ...]:
    """Ours, two encoders that only sort keys, and the peers that write RFC 8785.

    The encoders that only sort keys give the same digest, unless `is_exact`: the tree needs the exact route.
    """
    expected = digest(tree)
    live = msgspec.convert(tree, sql_instance.Instance)
    expected_modelled = digest(msgspec.to_builtins(live))
    return (
        Candidate("ours, a tree", lambda: digest(tree), lambda result: result == expected),
        Candidate(
            "ours, a struct of the modelled fields", lambda: digest(live), lambda result: result == expected_modelled
        ),
        Candidate(
            "orjson, sorted: the floor, not canonical",
            lambda: _sha256(orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)),
            lambda result: (result != expected) is is_exact,
        ),
        Candidate(
            "json, sort_keys: not canonical",
            lambda: _sha256(_as_text(tree).encode()),
            lambda result: (result != expected) is is_exact,
        ),
        *(
            Candidate(peer.name, _canonical_sha256(peer.dumps, tree), lambda result: result == expected)
            for peer in peers.canonicalizers
        ),
    )


def _canonical_sha256(dumps: Callable[[Json], bytes], tree: Json) -> Callable[[], object]:
    return lambda: _sha256(dumps(tree))


def _sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
