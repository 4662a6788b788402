"""Leaves out of a row what `setpoint.catalogue.rows` puts back: the same fields twice, usual types, verbs and paths."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, cast

from tools.catalogue.entries import Json

_VARIABLE: Final = re.compile(r"\{\w+\}")
_VERBS: Final = {"create": "POST", "list": "GET", "get": "GET", "patch": "PATCH", "update": "PUT", "delete": "DELETE"}
# Shorter ones take less room where they are.
_WORTH_SHARING: Final = 80

Node = dict[str, Json]


def compact(row: Node) -> None:
    """Changes the row in place."""
    _shorten_methods(row)
    _drop_usual_types(cast(Node, row["fields"]))
    counts = Counter(json.dumps(fields) for fields in _inner_fields(cast(Node, row["fields"])))
    places: dict[str, int] = {}
    shared: list[Json] = []
    _share(cast(Node, row["fields"]), counts, places, shared)
    if shared:
        row["shared"] = shared


def put_shared_back(row: Node) -> None:
    """Makes the fields of a compact row whole again, so that two rows can be compared."""
    shared = cast(list[Node], row.pop("shared", []))
    for fields in (*shared, cast(Node, row["fields"])):
        for below in _holders_of_fields(fields):
            if isinstance(below["fields"], int):
                below["fields"] = shared[below["fields"]]


def _holders_of_fields(fields: Node) -> Iterator[Node]:
    for field in cast(dict[str, Node], fields).values():
        if "fields" in field:
            inner = field["fields"]
            yield field
            if isinstance(inner, dict):
                yield from _holders_of_fields(inner)


def _drop_usual_types(fields: Node) -> None:
    for field in cast(dict[str, Node], fields).values():
        if field.get("type") == "string":
            del field["type"]
        _drop_usual_types(cast(Node, field.get("fields", {})))


def _inner_fields(fields: Node) -> Iterator[Node]:
    for field in cast(dict[str, Node], fields).values():
        if "fields" in field:
            below = cast(Node, field["fields"])
            yield below
            yield from _inner_fields(below)


def _share(fields: Node, counts: Counter[str], places: dict[str, int], shared: list[Json]) -> None:
    """Puts inner fields that are there twice into `shared`, the innermost first."""
    for field in cast(dict[str, Node], fields).values():
        if "fields" not in field:
            continue
        below = cast(Node, field["fields"])
        text = json.dumps(below)
        if text in places:
            field["fields"] = places[text]
            continue
        _share(below, counts, places, shared)
        if counts[text] > 1 and len(text) > _WORTH_SHARING:
            places[text] = len(shared)
            field["fields"] = len(shared)
            shared.append(below)


def _shorten_methods(row: Node) -> None:
    path = f"{row['prefix']}{row['name']}"
    for name, method in cast(dict[str, Node], row["methods"]).items():
        expected = path.rpartition("/")[0] if name in ("create", "list") else path
        _shorten(method, _VERBS[name], expected)
    for name, method in cast(dict[str, Node], row.get("other_methods", {})).items():
        _shorten(method, "POST", f"{path}{'/' if row['api'] == 'compute' else ':'}{name}")


def _shorten(method: Node, verb: str, path: str) -> None:
    if method["verb"] == verb:
        del method["verb"]
    if _VARIABLE.sub("{}", str(method["path"])) == _VARIABLE.sub("{}", path):
        del method["path"]
