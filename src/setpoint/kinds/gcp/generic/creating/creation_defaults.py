"""Members that are sent though the spec leaves them out, most of them at creation alone: a row says which, and when."""

from collections.abc import Mapping
from typing import Any

from setpoint.catalogue.rows import ANY_VALUE, CreationDefaults, KindFacts
from setpoint.engine.kind import Location
from setpoint.kinds.gcp.generic.members import with_defaults_of
from setpoint.kinds.gcp.generic.placement import parts_at, template_at


def with_creation_defaults(row: KindFacts, body: dict[str, Any], location: Location) -> dict[str, Any]:
    """The body with what is sent whatever the spec says, or because of which members there are, or of the place."""
    found = _with_constants(row, body)
    for one in row.creation_defaults:
        if not one.each and _is_at(one, row, location) and _all_given(one.given, found):
            found = with_defaults_of(one.members, found)
    return with_element_defaults(row, found, location, found)


def with_element_defaults(
    row: KindFacts, body: Mapping[str, Any], location: Location, whole: Mapping[str, Any]
) -> dict[str, Any]:
    """The body with what is sent in certain elements of its lists, in updates as well. `whole`: the object as it is."""
    found = dict(body)
    for one in row.creation_defaults:
        elements = body.get(one.each) if one.each else None
        if isinstance(elements, list) and _is_at(one, row, location) and _all_given(one.beside, whole):
            found[one.each] = [_with_members(one, element, row, location) for element in elements]
    return found


def _is_at(one: CreationDefaults, row: KindFacts, location: Location) -> bool:
    return not one.at or f"/{one.at}/" in template_at(row, location)


def _with_constants(row: KindFacts, body: dict[str, Any]) -> dict[str, Any]:
    constants = {
        member: value
        for member, value in row.constants.items()
        if not any(member in group and other in body for group in row.alternatives for other in group)
    }
    chosen = {
        member: word
        for member, words in row.chosen.items()
        for other, word in words.items()
        if other in body and member not in body
    }
    return {**constants, **chosen, **body}


def _with_members(one: CreationDefaults, element: Any, row: KindFacts, location: Location) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(element, Mapping) or not _all_given(one.given, element):
        return element
    return with_defaults_of(_filled(one.members, parts_at(row, location)), element)


def _all_given(given: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    return all(_is_given(body.get(name), expected) for name, expected in given.items())


def _is_given(value: Any, expected: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(expected, list | tuple):
        return value in expected
    return value is not None if expected == ANY_VALUE else bool(value == expected)


def _filled(value: Any, variables: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    """A value with the variables in its texts replaced."""
    if isinstance(value, Mapping):
        return {name: _filled(one, variables) for name, one in value.items()}
    return value.format_map(variables) if isinstance(value, str) else value
