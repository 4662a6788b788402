"""Between a spec and the API's object: each field of a row to its member, and back.

A reference is `{external: TEXT}` in the compared tree, with the text as the API has it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from setpoint.catalogue.rows import FieldFacts
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.kinds.gcp.generic.spec_types import ADDRESS, UNKNOWN, choices_of, is_choice

# A field whose text is JSON, and whose member is an object or a list.
JSON_TEXT: Final = "json-text"
_Tree = Mapping[str, Any]


def member_path(name: str, facts: FieldFacts) -> tuple[str, ...]:
    """The path of the member that a field is sent as, below that of the object it is in; empty for one that is not."""
    if facts.to in (*ADDRESS, UNKNOWN) or facts.output_only or facts.query:
        return ()
    return tuple(facts.to.split(".")) if facts.to else (name,)


# --- To the API -------------------------------------------------------------------------------------------------------


def to_members(tree: _Tree, fields: Mapping[str, FieldFacts]) -> dict[str, Any]:
    """The members of an object of the API; null for a field that is null."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        facts = fields.get(name)
        path = member_path(name, facts) if facts is not None else ()
        if facts is not None and path:
            _put(found, path, _member(value, facts))
    return found


def _put(target: dict[str, Any], path: tuple[str, ...], value: Json) -> None:
    for step in path[:-1]:
        below = target.setdefault(step, {})
        if not isinstance(below, dict):
            below = target[step] = {}
        target = below
    known = target.get(path[-1])
    # Two fields may be parts of one member.
    if isinstance(known, dict) and isinstance(value, Mapping):
        target[path[-1]] = {**known, **value}
    elif isinstance(known, list) and isinstance(value, list):
        target[path[-1]] = [*known, *value]
    else:
        target[path[-1]] = value


def _member(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if value is None:
        return None
    if facts.values:
        return facts.values.get(_word(value), value)
    if is_choice(facts):
        return [_chosen(one) for one in value] if facts.type == "list" else _chosen(value)
    if facts.shape is not None:
        return _shaped_member(value, facts)
    return [_single(one, facts) for one in value] if facts.type == "list" else _single(value, facts)


def _shaped_member(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    match facts.shape:
        case "object-to-list-of-one":
            return [to_members(value, facts.fields)]
        case "list-of-one-to-object":
            return to_members(value[0], facts.fields) if value else None
        case "key-value-list-to-map":
            key, content = list(facts.fields)[:2]
            return {one[key]: one.get(content) for one in value}
        case "true-to-object":
            return {} if value else None
        case "part-of-list":
            return [{**to_members(one, facts.fields), **facts.adds} for one in value]
        case _:
            return {str(one[facts.keys[0]]): _keyed_member(one, facts) for one in value}


def _single(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if facts.ref is not None:
        text = _external(value)
        return {facts.within: text} if facts.within else text
    if facts.secret:
        return value.get("value") if isinstance(value, Mapping) else value
    if facts.fields and isinstance(value, Mapping):
        return {**facts.adds, **to_members(value, facts.fields)}
    if facts.int64_text and isinstance(value, int):
        return str(value)
    if facts.format == JSON_TEXT and isinstance(value, str):
        return json.loads(value)
    return value


def _word(value: Json) -> str:
    """A value of a spec as the text that the row knows it by."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _chosen(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The text of the one member that is given, at any depth."""
    while isinstance(value, Mapping):
        value = next((one for one in value.values() if one is not None), None)
    return value


def _keyed_member(value: _Tree, facts: FieldFacts) -> dict[str, Any]:
    """An element of a list that is a map in the API: its key is a member of it only where the row says so."""
    key = facts.keys[0]
    is_member = bool(facts.fields[key].to) if key in facts.fields else False
    return to_members({name: one for name, one in value.items() if name != key or is_member}, facts.fields)


def _external(value: Any) -> Any:  # noqa: ANN401 - JSON
    return value.get("external") if isinstance(value, Mapping) else value


# --- From the API -----------------------------------------------------------------------------------------------------


def from_members(body: _Tree, fields: Mapping[str, FieldFacts]) -> dict[str, Any]:
    """The fields that an object of the API has; nulls, and what the row does not know, are left out."""
    found: dict[str, Any] = {}
    for name, facts in fields.items():
        path = member_path(name, facts)
        value = _at(body, path) if path and not facts.secret else MISSING
        if value is MISSING or value is None:
            continue
        read = _field(value, facts)
        if read is not None:
            found[name] = read
    return found


def _at(body: _Tree, path: tuple[str, ...]) -> Json | Missing:
    here: Any = body
    for step in path:
        if not isinstance(here, Mapping) or step not in here:
            return MISSING
        here = here[step]
    found: Json = here
    return found


def _field(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if facts.values:
        return _own_word(value, facts)
    if facts.shape is not None and not is_choice(facts):
        return _shaped_field(value, facts)
    if facts.type == "list":
        return [_single_field(one, facts) for one in value] if isinstance(value, list) else None
    return _single_field(value, facts)


def _shaped_field(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    match facts.shape:
        case "true-to-object":
            return True
        case "part-of-list":
            return [from_members(one, facts.fields) for one in value if _is_part(one, facts)] or None
        case "object-to-list-of-one":
            return from_members(value[0], facts.fields) if value and isinstance(value, list) else None
        case "list-of-one-to-object":
            return [from_members(value, facts.fields)]
        case "key-value-list-to-map":
            key, content = list(facts.fields)[:2]
            return [{key: name, content: one} for name, one in value.items()]
        case _:
            return [{**from_members(one, facts.fields), facts.keys[0]: name} for name, one in value.items()]


def _single_field(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if is_choice(facts):
        return _first_choice(value, facts)
    if facts.ref is not None:
        text = value.get(facts.within) if facts.within and isinstance(value, Mapping) else value
        return {"external": text}
    if facts.fields and isinstance(value, Mapping):
        return from_members(value, facts.fields)
    if facts.format == JSON_TEXT:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return _number(value, facts)


def _own_word(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    """The value of the spec for a value of the API."""
    found = next((word for word, one in facts.values.items() if one == value), None)
    if found is None:
        return value
    return found == "true" if facts.type == "boolean" else found


def _is_part(element: Any, facts: FieldFacts) -> bool:  # noqa: ANN401 - JSON
    """Whether an element of a list that several fields share is one of this field."""
    return isinstance(element, Mapping) and all(element.get(name) == one for name, one in facts.adds.items())


def _first_choice(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    """The text as the first member that can hold it: which one an author gave, the API does not say."""
    choices = choices_of(facts)
    name = next((one for one, its in choices.items() if its.ref is not None), next(iter(choices)))
    return {name: {"external": value} if choices[name].ref is not None else value}


def _number(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    """A number that comes as text; and text that comes as a number."""
    kind = facts.items if facts.type == "list" else facts.type
    if kind == "integer" and isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    if kind == "string" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value
