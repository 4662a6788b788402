"""Values that mean the same to the service: links in their forms, durations, zero values that an answer leaves out.

What an author declares is fitted to the live object: a value that means the same is the live one, so that nothing
differs, and what the service added to the elements of a list stays.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from setpoint.catalogue.rows import FieldFacts
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path
from setpoint.kinds.gcp.generic.members import JSON_TEXT, NUMBER_TEXT, OAUTH_SCOPE
from setpoint.kinds.gcp.generic.spec_types import is_choice
from setpoint.kinds.gcp.shared.oauth_scopes import oauth_scope

_ORIGIN: Final = re.compile(
    r"(?:https?:)?//(?:[^/]+\.)?googleapis\.com/(?:(?:[a-z]+/)?(?:v[0-9][0-9a-z]*|beta|alpha)/)?"
)
_PROJECT: Final = re.compile(r"^projects/([^/]+)/")
_DURATION: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?s")
# A range of one port: `80` is returned as `80-80`.
_RANGE_OF_ONE: Final = re.compile(r"([0-9]+)-\1")
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|\+00:00)")


# --- Texts ------------------------------------------------------------------------------------------------------------


def relative_name(link: str) -> str:
    """A link without host and version: `projects/p/…`."""
    return _ORIGIN.sub("", link, count=1)


def same_link(one: str, other: str) -> bool:
    """Whether two texts name the same object: in full, relative, or by the last parts; by a project's id or number."""
    left, right = relative_name(one).strip("/"), relative_name(other).strip("/")
    if left == right:
        return True
    if _is_number(left) != _is_number(right) and _PROJECT.sub("", left) == _PROJECT.sub("", right):
        return True
    shorter, longer = sorted((left, right), key=len)
    return bool(shorter) and longer.endswith(f"/{shorter}")


def _is_number(name: str) -> bool:
    found = _PROJECT.match(name)
    return found is not None and found[1].isdecimal()


def same_text(one: str, other: str, facts: FieldFacts) -> bool:
    """Whether two texts mean the same in this field."""
    if one == other:
        return True
    if facts.format in (JSON_TEXT, NUMBER_TEXT):
        return _same_json(one, other)
    if facts.format == OAUTH_SCOPE:
        return oauth_scope(one) == oauth_scope(other)
    if _RANGE_OF_ONE.sub(r"\1", one) == _RANGE_OF_ONE.sub(r"\1", other):
        return True
    if "/" in one and "/" in other and ("//" in one + other or _is_number(one) != _is_number(other)):
        return same_link(one, other)
    for pattern in (_DURATION, _TIME):
        left, right = pattern.fullmatch(one), pattern.fullmatch(other)
        if left and right:
            return (left[1].upper(), (left[2] or "").rstrip("0")) == (right[1].upper(), (right[2] or "").rstrip("0"))
    return False


def _same_json(one: str, other: str) -> bool:
    try:
        return canonical(json.loads(one)) == canonical(json.loads(other))
    except ValueError:
        return False


# --- Zero values ------------------------------------------------------------------------------------------------------


def is_zero(value: Any, *, inside: bool = False) -> bool:  # noqa: ANN401 - JSON
    """Whether an answer may leave the value out: false, 0, empty text, an enum that is unspecified, an empty list.

    Of an object, when it has members and all are such: whether an empty one is there may mean something.
    """
    if isinstance(value, Mapping):
        return (bool(value) or inside) and all(is_zero(one, inside=True) for one in value.values())
    if isinstance(value, str):
        return not value or value.endswith("_UNSPECIFIED") or value == "0s"
    return value in (False, 0) or (isinstance(value, list | tuple) and not value)


def _is_first(value: Any, facts: FieldFacts) -> bool:  # noqa: ANN401 - JSON
    """Whether it is the first value of an enum in the order of their numbers: 0, which an answer may leave out."""
    return bool(facts.enum) and value == facts.enum[0] and list(facts.enum) != sorted(facts.enum)


# --- The fit ----------------------------------------------------------------------------------------------------------


def fitted(declared: Mapping[str, Any], live: Mapping[str, Any], fields: Mapping[str, FieldFacts]) -> dict[str, Any]:
    """The declared fields, each in the words of the live object where it means the same."""
    found: dict[str, Any] = {}
    for name, value in declared.items():
        now = _fitted(value, live.get(name, MISSING), fields.get(name) or FieldFacts("any"))
        if now is not MISSING:
            found[name] = now
    return found


def _fitted(value: Any, live: Json | Missing, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if value is None:
        return None
    if live is MISSING or live is None:
        return MISSING if is_zero(value) or _is_first(value, facts) else value
    if facts.type == "list" and isinstance(value, list) and isinstance(live, list | tuple):
        return _fitted_list(value, live, facts)
    return _fitted_single(value, live, facts)


def _fitted_single(value: Any, live: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if (facts.ref is not None or is_choice(facts)) and isinstance(value, Mapping) and isinstance(live, Mapping):
        # Of a choice, the live member gives way to the declared one.
        return live if _same_reference(value, live) else {**{name: None for name in live if name not in value}, **value}
    if facts.fields and isinstance(value, Mapping) and isinstance(live, Mapping):
        return fitted(value, live, facts.fields)
    if isinstance(value, str) and isinstance(live, str):
        return live if same_text(value, live, facts) else value
    return value


def _same_reference(value: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    left, right = _texts_of(value), _texts_of(live)
    return len(left) == len(right) == 1 and same_link(left[0], right[0])


def _texts_of(value: Any) -> list[str]:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return [value]
    return [text for one in value.values() for text in _texts_of(one)] if isinstance(value, Mapping) else []


def _fitted_list(value: list[Any], live: Sequence[Any], facts: FieldFacts) -> list[Any]:
    """The live list where every element of it means what the declared one does; else the declared elements, fitted."""
    if facts.keys and facts.fields:
        return _fitted_keyed(value, live, facts)
    if facts.set or facts.ref is not None or is_choice(facts):
        return _fitted_set(value, live, facts)
    if len(value) != len(live):
        return value
    if all(_contains(now, was, facts) for was, now in zip(value, live, strict=True)):
        return list(live)
    return [_with_filled(was, now, facts) for was, now in zip(value, live, strict=True)]


def _with_filled(value: Any, live: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    """An element of a list that changes, with what the service filled in: what an author took out is null here."""
    if not (isinstance(value, Mapping) and isinstance(live, Mapping) and facts.fields):
        return value
    found = {
        name: one
        for name, one in live.items()
        if name not in value and not (name in facts.fields and facts.fields[name].pruned)
    }
    for name, one in value.items():
        its = facts.fields.get(name) or FieldFacts("any")
        now = _fitted(one, live.get(name, MISSING), its)
        found[name] = _with_filled(one if now is MISSING else now, live.get(name), its) if its.type == "object" else now
    return {name: one for name, one in found.items() if one is not MISSING}


def _fitted_keyed(value: list[Any], live: Sequence[Any], facts: FieldFacts) -> list[Any]:
    known = {tuple(str(one.get(key)) for key in facts.keys): one for one in live if isinstance(one, Mapping)}
    found = []
    for one in value:
        key = tuple(str(one.get(name)) for name in facts.keys) if isinstance(one, Mapping) else ()
        found.append(fitted(one, known[key], facts.fields) if key in known else one)
    return found


def _fitted_set(value: list[Any], live: Sequence[Any], facts: FieldFacts) -> list[Any]:
    """The live list where it has the same elements, in any order; else the declared ones, each fitted.

    Each declared element has a live one of its own; one that is there twice counts once.
    """
    rest = _distinct(live)
    found: list[Any] = []
    all_found = True
    for one in _distinct(value):
        now = next((now for now in rest if _contains(now, one, facts)), None)
        if now is None:
            all_found = False
        else:
            rest.remove(now)
        found.append(one if now is None else now)
    return list(live) if all_found and not rest else found


def _distinct(elements: Sequence[Any]) -> list[Any]:
    return list({canonical(one): one for one in elements}.values())


def _contains(live: Any, value: Any, facts: FieldFacts) -> bool:  # noqa: ANN401 - JSON
    """Whether the live element means what is declared, with nothing else than what the service added."""
    if isinstance(value, Mapping) and isinstance(live, Mapping):
        if facts.ref is not None or is_choice(facts):
            return _same_reference(value, live)
        return all(_holds(one, live.get(name, MISSING), facts.fields.get(name)) for name, one in value.items())
    if isinstance(value, str) and isinstance(live, str):
        return same_text(value, live, facts)
    return canonical(value) == canonical(live)


def _holds(value: Any, live: Json | Missing, facts: FieldFacts | None) -> bool:  # noqa: ANN401 - JSON
    if live is MISSING and facts is not None and (facts.secret or facts.input_only):
        # No answer has it.
        return True
    now = _fitted(value, live, facts or FieldFacts("any"))
    if now is MISSING:
        return True
    if live is MISSING:
        return now is None
    if isinstance(now, Mapping) and isinstance(live, Mapping):
        # What an author took out is null, and is not there.
        return all(_holds(one, live.get(name, MISSING), None) for name, one in now.items())
    return canonical(now) == canonical(live)


# --- JSON that is a text in the spec, such as the schema of a table ---------------------------------------------------


def without_unmanaged(spec: Mapping[str, Any], live: Mapping[str, Any], paths: Sequence[Path]) -> Mapping[str, Any]:
    """The declared fields; of a text with unmanaged members, the live one where the two differ in these alone.

    Otherwise it is sent without them, which leaves them as they are. A path such as `spec.schema.fields.policyTags`
    means that member of the objects at every depth.
    """
    found = dict(spec)
    for field in {str(path.steps[1]) for path in paths}:
        names = {str(path.steps[-1]) for path in paths if path.steps[1] == field}
        if not isinstance(spec.get(field), str):
            continue
        own = _without_members(json.loads(spec[field]), names)
        now = live.get(field)
        is_same = isinstance(now, str) and same(own, _without_members(json.loads(now), names))
        found[field] = now if is_same else json.dumps(own)
    return found


def _without_members(value: Any, names: Collection[str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        return {name: _without_members(one, names) for name, one in value.items() if name not in names}
    return [_without_members(one, names) for one in value] if isinstance(value, list) else value
