"""Hand-written exceptions: `exceptions/SERVICE.yaml`, a line for each odd fact.

    ComputeNetwork:
      routingMode: routingConfig.routingMode        # text: the member of the API's object
      mtu: {default: 1460, default_from: api}       # an object: facts of the field; null removes one
      allow.protocol: IPProtocol                    # a dotted path: a field of the objects in a list or an object
      delayed: null                                 # no such field
      $labels: null                                 # a key of the row; dots go deeper: $operations.create
      $methods.update.sends_as+: {a: b}             # a plus: to be added to an object
      $hold: why the kind cannot be right yet       # the kind is not written

A path with `*` as one step means each field there; `**` at its beginning means any depth. A field that is not there is
added when its `type` is given.
Exceptions are applied before the rules, which go by them (a member for a list finds those of its fields, `$collection`
the methods), and once more after the rules.
"""

from collections.abc import Iterator
from typing import cast

import yaml

from tools.catalogue.entries import EXCEPTIONS, FIELD_KEYS, ROW_KEYS, FieldEntry, Json, RowEntry, Rows

Lines = dict[str, dict[str, Json]]


class ExceptionRefused(Exception):
    """A line of an exceptions file that does not fit the facts."""


def exceptions_of(service: str) -> Lines:
    """The lines of a service, by kind; none when it has no file."""
    file = EXCEPTIONS / f"{service}.yaml"
    return cast(Lines, yaml.safe_load(file.read_text("utf-8")) or {}) if file.exists() else {}


def apply_exceptions(service: str, rows: Rows) -> None:
    """Changes the rows of a service as its exceptions say."""
    for kind, lines in exceptions_of(service).items():
        if kind not in rows:
            raise ExceptionRefused(f"exceptions/{service}.yaml: {kind} is not in facts/{service}.json")
        for path, value in lines.items():
            try:
                _apply(rows[kind], path, value)
            except ExceptionRefused as refused:
                raise ExceptionRefused(f"exceptions/{service}.yaml: {kind}: {path}: {refused}") from refused


def _apply(row: RowEntry, path: str, value: Json) -> None:
    if path.startswith("$"):
        _set_key(cast(dict[str, Json], row), path[1:], value)
        return
    targets = list(_holders(row["fields"], path.split(".")))
    if "*" in path:
        targets = [(holder, name) for holder, name in targets if name in holder]
    if not targets and value is not None:
        raise ExceptionRefused("no such field")
    for fields, name in targets:
        _change_field(fields, name, value)


def _set_key(row: dict[str, Json], dotted: str, value: Json) -> None:
    steps = dotted.split(".")
    if steps[0] not in (*ROW_KEYS, "hold", "schema", "collection", "discovery"):
        raise ExceptionRefused(f"a row has no {steps[0]}")
    _set_at(row, steps, value)


def _set_at(target: dict[str, Json], steps: list[str], value: Json) -> None:
    for step in steps[:-1]:
        below = target.setdefault(step, {})
        if not isinstance(below, dict):
            raise ExceptionRefused(f"{step} is no object")
        target = below
    known = target.get(steps[-1].removesuffix("+"))
    if value is None:
        target.pop(steps[-1], None)
    elif steps[-1].endswith("+"):
        if not isinstance(value, dict) or not isinstance(known, dict | None):
            raise ExceptionRefused(f"{steps[-1]} is no object to add to")
        target[steps[-1][:-1]] = {**(known or {}), **value}
    else:
        target[steps[-1]] = value


def _holders(fields: dict[str, FieldEntry], steps: list[str]) -> Iterator[tuple[dict[str, FieldEntry], str]]:
    """The maps that hold a field of the path, each with the name of it there."""
    first, rest = steps[0], steps[1:]
    if first == "**":
        yield from _holders_below(fields, rest)
        return
    names = list(fields) if first == "*" else [first]
    for name in names:
        if not rest:
            yield fields, name
        elif name in fields:
            below = fields[name].get("fields", {}) if first == "*" else fields[name].setdefault("fields", {})
            yield from _holders(below, rest)


def _holders_below(fields: dict[str, FieldEntry], steps: list[str]) -> Iterator[tuple[dict[str, FieldEntry], str]]:
    yield from _holders(fields, steps)
    for below in list(fields.values()):
        yield from _holders_below(below.get("fields", {}), steps)


def _change_field(fields: dict[str, FieldEntry], name: str, value: Json) -> None:
    if value is None:
        fields.pop(name, None)
        return
    facts: dict[str, Json] = {"to": value} if isinstance(value, str) else cast(dict[str, Json], value)
    if not isinstance(facts, dict):
        raise ExceptionRefused(f"{value!r} is neither a member of the API, nor facts, nor null")
    if name not in fields and "type" not in facts:
        raise ExceptionRefused("no such field, and no type for a new one")
    field = cast(dict[str, Json], fields.setdefault(name, {}))
    for key, fact in facts.items():
        if key.split(".")[0] not in FIELD_KEYS:
            raise ExceptionRefused(f"a field has no {key}")
        _set_at(field, key.split("."), fact)
