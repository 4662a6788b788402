"""Between a spec and the API's object: each field of a row to its member, and back.

A reference is `{external: TEXT}` in the compared tree, with the text as the API has it.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from setpoint.catalogue.parts import BESIDE
from setpoint.catalogue.parts import member_path as member_path
from setpoint.catalogue.rows import FieldFacts, KindFacts
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.kinds.gcp.generic.shared_members import own_part, shared_paths
from setpoint.kinds.gcp.generic.spec_types import choices_of, is_choice
from setpoint.kinds.gcp.shared.oauth_scopes import oauth_scope

# A field whose text is JSON, and whose member is an object or a list.
JSON_TEXT: Final = "json-text"
# A field whose text is a number, and whose member is that number.
NUMBER_TEXT: Final = "number-text"
# A scope, which may be given by its alias.
OAUTH_SCOPE: Final = "oauth-scope"
# A secret that is sent in base64.
BYTES: Final = "byte"
_Tree = Mapping[str, Any]
_NEVER_EMPTY: Final = ("google-duration", "google-datetime")
_OF_SHARED_LISTS: Final = ("part-of-list", "value-of-element")


# --- To the API -------------------------------------------------------------------------------------------------------


def to_members(tree: _Tree, fields: Mapping[str, FieldFacts]) -> dict[str, Any]:
    """The members of an object of the API; null for a field that is null."""
    found: dict[str, Any] = {}
    for name, value in sorted(tree.items(), key=lambda one: not _is_first(fields.get(one[0]))):
        facts = fields.get(name)
        path = member_path(name, facts) if facts is not None else ()
        if facts is not None and facts.format in _NEVER_EMPTY and value == "":
            # How Terraform writes that there is none, in an object that is there.
            continue
        if facts is not None and path:
            put_member(found, path, _member(value, facts))
        elif facts is not None and facts.to == BESIDE:
            found |= to_members(dict.fromkeys(facts.fields) if value is None else value, facts.fields)
    return found


def _is_first(facts: FieldFacts | None) -> bool:
    """Whether a field is the one element that stands before others in a list: the boot disk of an instance."""
    return facts is not None and facts.shape == "part-of-list" and facts.type == "object"


def put_member(target: dict[str, Any], path: tuple[str, ...], value: Json) -> None:
    """Puts a value at a path; what is there already and is an object or a list too is joined with it."""
    for step in path[:-1]:
        below = target.setdefault(step, {})
        if not isinstance(below, dict):
            below = target[step] = {}
        target = below
    known = target.get(path[-1])
    if value is None and known is not None:
        return
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
        return facts.values.get(word_of(value), value)
    if is_choice(facts):
        return [_chosen(one) for one in value] if facts.type == "list" else _chosen(value)
    if facts.shape is not None:
        return _map_member(value, facts) if facts.type == "map" else _shaped_member(value, facts)
    return [_single(one, facts) for one in value] if facts.type == "list" else _single(value, facts)


def _map_member(value: _Tree, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    """A map of a spec: as a list of keys and values, or with what is in each of its objects."""
    if facts.shape == "map-to-key-value-list":
        key, content = facts.keys
        return [{key: name, content: one} for name, one in value.items()]
    return {name: one.get(facts.within) for name, one in value.items()}


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
            return dict(facts.adds) if value else None
        case "inner-object":
            name, inner = next(iter(facts.fields.items()))
            return _member(value.get(name), inner)
        case "part-of-list":
            elements = value if isinstance(value, list) else [value]
            return [{**to_members(one, facts.fields), **facts.adds} for one in elements]
        case "value-of-element":
            return [{**facts.adds, "value": value}]
        case _:
            return {str(_external(one[facts.keys[0]])): _keyed_member(one, facts) for one in value}


def _single(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if facts.ref is not None:
        text = _external(value)
        return {facts.within: text, **facts.adds} if facts.within else text
    if facts.secret:
        text = value.get("value") if isinstance(value, Mapping) else value
        return _encoded(text) if facts.format == BYTES and isinstance(text, str) else text
    if facts.fields and isinstance(value, Mapping):
        return {**facts.adds, **to_members(value, facts.fields)}
    if facts.int64_text and isinstance(value, int):
        return str(value)
    if facts.format in (JSON_TEXT, NUMBER_TEXT) and isinstance(value, str):
        return json.loads(value)
    if facts.format == OAUTH_SCOPE and isinstance(value, str):
        return oauth_scope(value)
    return value


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()


def row_for(row: KindFacts, spec: _Tree) -> KindFacts:
    """The row for a spec that may have secrets in base64 already."""
    encoded = {
        name: structs.replace(facts, format="")
        for name, facts in row.fields.items()
        if facts.encoded_by and spec.get(facts.encoded_by) is True
    }
    return structs.replace(row, fields={**row.fields, **encoded}) if encoded else row


def word_of(value: Json) -> str:
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


def inputs_of(tree: _Tree, fields: Mapping[str, FieldFacts]) -> dict[str, Any]:
    """The part of a tree that a service takes and never tells, without secrets."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        facts = fields.get(name)
        if facts is None or facts.secret or facts.ref is not None:
            continue
        if facts.input_only:
            found[name] = value
        elif facts.type == "object" and isinstance(value, Mapping) and (below := inputs_of(value, facts.fields)):
            found[name] = below
    return found


# --- From the API -----------------------------------------------------------------------------------------------------


def from_members(body: _Tree, fields: Mapping[str, FieldFacts]) -> dict[str, Any]:
    """The fields that an object of the API has; nulls, and what the row does not know, are left out."""
    found: dict[str, Any] = {}
    claimers = {name: facts for name, facts in fields.items() if _claims_elements(facts)}
    paths = {name: member_path(name, facts) for name, facts in fields.items()}
    shared = shared_paths(paths)
    for name, facts in fields.items():
        if facts.to == BESIDE and (beside := from_members(body, facts.fields)):
            found[name] = beside
        path = paths[name]
        value = member_at(body, path) if path and not facts.secret else MISSING
        if claimers and isinstance(value, list):
            value = _own_elements(value, name, path, claimers)
        elif name in shared and value is not MISSING:
            value = own_part(value, name, fields)
        if value is MISSING or value is None:
            continue
        read = _field(value, facts)
        if read is not None:
            found[name] = read
    return found


def _claims_elements(facts: FieldFacts) -> bool:
    """Whether some elements of the list are this field's, though others share the list."""
    return facts.shape in _OF_SHARED_LISTS or (facts.ref is not None and bool(facts.ref.prefix))


def _own_elements(
    value: list[Any], name: str, path: tuple[str, ...], claimers: Mapping[str, FieldFacts]
) -> list[Any] | None:
    """The elements of a list that are a field's: those that it claims, or those that no other field claims."""
    others = [facts for other, facts in claimers.items() if member_path(other, facts) == path]
    if not others:
        return value
    if name in claimers:
        return [one for one in value if _is_part(one, claimers[name])] or None
    return [one for one in value if not any(_is_part(one, facts) for facts in others)] or None


def member_at(body: _Tree, path: tuple[str, ...]) -> Json | Missing:
    """The member at a path; MISSING where there is none."""
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
        return _map_field(value, facts) if facts.type == "map" else _shaped_field(value, facts)
    if facts.type == "list":
        return [_single_field(one, facts) for one in value] if isinstance(value, list) else None
    return _single_field(value, facts)


def _map_field(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if facts.shape == "map-to-key-value-list":
        key, content = facts.keys
        return {str(one.get(key)): one.get(content) for one in value}
    return {name: {facts.within: one} for name, one in value.items()}


def _shaped_field(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    match facts.shape:
        case "true-to-object":
            return True
        case "inner-object":
            name, inner = next(iter(facts.fields.items()))
            return {name: _field(value, inner)}
        case "part-of-list":
            found = [from_members(one, facts.fields) for one in value if _is_part(one, facts)]
            return (found if facts.type == "list" else found[0]) if found else None
        case "value-of-element":
            return next((one.get("value") for one in value if _is_part(one, facts)), None)
        case "object-to-list-of-one":
            return from_members(value[0], facts.fields) if value and isinstance(value, list) else None
        case "list-of-one-to-object":
            return [from_members(value, facts.fields)]
        case "key-value-list-to-map":
            key, content = list(facts.fields)[:2]
            return [{key: name, content: one} for name, one in value.items()]
        case _:
            key = facts.keys[0]
            is_reference = key in facts.fields and facts.fields[key].ref is not None
            return [
                {**from_members(one, facts.fields), key: {"external": name} if is_reference else name}
                for name, one in value.items()
            ]


def _single_field(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if is_choice(facts):
        return _first_choice(value, facts)
    if facts.ref is not None:
        text = value.get(facts.within) if facts.within and isinstance(value, Mapping) else value
        return {"external": text}
    if facts.fields and isinstance(value, Mapping):
        return None if _is_off(value, facts) else from_members(value, facts.fields)
    if facts.format == JSON_TEXT:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return _number(value, facts)


def _is_off(value: _Tree, facts: FieldFacts) -> bool:
    """Whether an object that is there to switch something on has it switched off."""
    return facts.type == "object" and any(one is True and not value.get(name) for name, one in facts.adds.items())


def _own_word(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    """The value of the spec for a value of the API."""
    found = next((word for word, one in facts.values.items() if one == value), None)
    if found is None:
        return None if facts.type == "boolean" else value
    return found == "true" if facts.type == "boolean" else found


def _is_part(element: Any, facts: FieldFacts) -> bool:  # noqa: ANN401 - JSON
    """Whether an element of a list that several fields share is one of this field."""
    if isinstance(element, str):
        return facts.ref is not None and facts.ref.prefix.strip("/") in element
    if not isinstance(element, Mapping):
        return False
    if facts.known_by:
        # What every element is sent with is never absent.
        others = {name: one for name, one in facts.known_by.items() if name not in facts.adds}
        return all(element.get(name, others.get(name)) == one for name, one in facts.known_by.items())
    return all(element.get(name) == one for name, one in facts.adds.items())


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
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return value


# --- Bodies -----------------------------------------------------------------------------------------------------------


def with_defaults_of(defaults: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """A body with the members that it lacks, at any depth."""
    found = {**defaults, **body}
    for name, default in defaults.items():
        if isinstance(default, Mapping) and isinstance(found[name], Mapping):
            found[name] = with_defaults_of(default, found[name])
    return found


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The value without members that are null."""
    if isinstance(value, Mapping):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def kept(live: Any, before: Any, after: Any) -> Any:  # noqa: ANN401 - JSON
    """The value to be sent: `after`, with the members of the live object that are not modelled."""
    if isinstance(live, Mapping) and isinstance(after, Mapping):
        was = before if isinstance(before, Mapping) else {}
        unmodelled = {name: one for name, one in live.items() if name not in was and name not in after}
        return {**unmodelled, **{name: kept(live.get(name), was.get(name), one) for name, one in after.items()}}
    return after


def with_removals(live: Any, value: Any) -> Any:  # noqa: ANN401 - JSON
    """A value for a merge patch: what it no longer has is null."""
    if isinstance(live, Mapping) and isinstance(value, Mapping):
        removed = {name: None for name in live if name not in value}
        return {**removed, **{name: with_removals(live.get(name), one) for name, one in value.items()}}
    return value
