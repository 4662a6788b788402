"""Contests: the canonical bytes of a value, and their digest."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import orjson

from benchmarks import sql_instance
from benchmarks.measuring import Contest, Contestant
from benchmarks.opponents import Opponents
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json

SUBJECT: Final = "canonical bytes + SHA-256"
EXACT_SUBJECT: Final = "canonical bytes + SHA-256: a float, astral keys"

_as_text: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def contests(opponents: Opponents) -> Iterator[Contest]:
    """A tree as it was decoded in each size, and one that only our exact route can write."""
    for size in sql_instance.SIZES:
        body = sql_instance.body_of(size)
        yield Contest(SUBJECT, size.label, _contestants(orjson.loads(body), opponents, is_exact=False))
    medium = sql_instance.SIZES[1]
    tree = sql_instance.with_float_and_astral_keys(sql_instance.body_of(medium))
    yield Contest(EXACT_SUBJECT, medium.label, _contestants(tree, opponents, is_exact=True))


def _contestants(tree: Json, opponents: Opponents, *, is_exact: bool) -> tuple[Contestant, ...]:
    """Ours, two that only sort keys, and those that write RFC 8785 like us.

    Those that only sort have our digest, unless the tree is one that takes the `is_exact` route.
    """
    ours = digest(tree)
    live = msgspec.convert(tree, sql_instance.Instance)
    modelled = digest(msgspec.to_builtins(live))
    return (
        Contestant("ours, a tree", lambda: digest(tree), lambda found: found == ours),
        Contestant("ours, a struct of the modelled fields", lambda: digest(live), lambda found: found == modelled),
        Contestant(
            "orjson, sorted: the floor, not canonical",
            lambda: _sha256(orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)),
            lambda found: (found != ours) is is_exact,
        ),
        Contestant(
            "json, sort_keys: not canonical",
            lambda: _sha256(_as_text(tree).encode()),
            lambda found: (found != ours) is is_exact,
        ),
        *(
            Contestant(one.name, _hashing(one.dumps, tree), lambda found: found == ours)
            for one in opponents.canonicalizers
        ),
    )


def _hashing(dumps: Callable[[Json], bytes], tree: Json) -> Callable[[], object]:
    return lambda: _sha256(dumps(tree))


def _sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
