"""Specs in which every field that can be sent is set, and the same with another value of one of them."""

from collections.abc import Iterator, Mapping
from typing import Any

from setpoint.catalogue.parts import LOCAL, UNKNOWN
from setpoint.catalogue.rows import FieldFacts, KindFacts
from setpoint.kinds.gcp.generic.spec_types import is_choice
from tests.catalogue_kinds.overrides import SPECS
from tests.catalogue_kinds.spec_values import _address, value_of

_NUMBER_TEXTS = ("1", "2", "3")
# Shapes of which `value_of` knows what they hold.
_WHOLE = ("inner-object", "key-value-list-to-map")


def full_spec(row: KindFacts) -> dict[str, Any]:
    """A spec with a value for every field that can be sent; of a choice, one."""
    return {**_object(row.fields, 0), **SPECS.get(row.kind, {}), **_address(row)}


def changed_specs(row: KindFacts, spec: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The spec with another value of one of its fields, for each that has one."""
    for name, facts in row.fields.items():
        if name in spec and not (facts.output_only or facts.to in ("url", "id", UNKNOWN, LOCAL) or facts.query):
            other = next((one for place in (1, 2) if (one := _value(facts, place)) != spec[name]), None)
            if other is not None:
                yield name, {**spec, name: other}


def _object(fields: Mapping[str, FieldFacts], place: int) -> dict[str, Any]:
    found = {name: _value(facts, place) for name, facts in fields.items() if name not in ("projectRef", "resourceID")}
    return {name: one for name, one in found.items() if one is not None and not fields[name].output_only}


def _value(facts: FieldFacts, place: int) -> Any:
    """One of three values; None for a field that no member is known for."""
    if facts.to in (UNKNOWN, LOCAL):
        return None
    if facts.fields and not _is_whole(facts):
        inner = _object(facts.fields, place)
        return [inner] if facts.type == "list" else {"some-key": inner} if facts.type == "map" else inner
    if facts.format == "number-text":
        return _NUMBER_TEXTS[place]
    if facts.type == "map" and facts.items == "object":
        return {"some-key": {facts.within: [_NUMBER_TEXTS[place]]} if facts.within else {}}
    if facts.type == "any":
        return {"some": place}
    return value_of(facts, place)


def _is_whole(facts: FieldFacts) -> bool:
    has_form = facts.secret or facts.ref is not None or bool(facts.one_of_refs) or bool(facts.values)
    return has_form or is_choice(facts) or facts.shape in _WHOLE
