"""Fields of a spec that cannot be sent: the catalogue knows no member for them, or a text is not what the member is."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from setpoint.catalogue.parts import UNKNOWN
from setpoint.catalogue.rows import FieldFacts, KindFacts
from setpoint.core.values.paths import Path
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.gcp.generic.members import JSON_TEXT, NUMBER_TEXT


def field_problems(row: KindFacts, resource: Resource) -> Iterator[ManifestInvalid]:
    """An error for each field that cannot be sent."""
    for at, value, facts in _fields_in(resource.spec, row.fields, Path(("spec",))):
        # What is unknown, and is not wanted, needs no member.
        if facts.to == UNKNOWN and value is not False:
            reason = facts.reason or f"no member of {row.host} is known for it"
            yield field_invalid(resource, str(at), f" cannot be set: {reason}")
        elif isinstance(value, str) and facts.format == JSON_TEXT:
            yield from _json_problem(value, resource, at)
        elif isinstance(value, str) and facts.format == NUMBER_TEXT and not _is_number(value):
            yield field_invalid(resource, str(at), " is no number: write one")


def _fields_in(
    spec: Mapping[str, Any], fields: Mapping[str, FieldFacts], at: Path
) -> Iterator[tuple[Path, Any, FieldFacts]]:
    """Every field at any depth, but for those in one that is unknown; each element of a list by itself."""
    for name, value in spec.items():
        facts = fields.get(name)
        if facts is None:
            continue
        here = [(at / name, value)]
        if isinstance(value, list) and facts.to != UNKNOWN:
            here = [(at / name / place, one) for place, one in enumerate(value)]
        for place, one in here:
            yield place, one, facts
            if isinstance(one, Mapping) and facts.to != UNKNOWN:
                yield from _fields_in(one, facts.fields, place)


def _json_problem(text: str, resource: Resource, at: Path) -> Iterator[ManifestInvalid]:
    try:
        json.loads(text)
    except ValueError as error:
        yield field_invalid(resource, str(at), f" is no JSON: {error}")


def _is_number(text: str) -> bool:
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, int | float) and not isinstance(found, bool)
