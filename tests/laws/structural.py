"""The API server's validation by a structural schema, as far as types say it: constraints are not part of it."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

# Those of a type are written as JSON, those of a constraint in single quotes.
_CHOICE: Final = re.compile(r'self in (\[".*\])')
_RANGES: Final = {"int32": 2**31, "int64": 2**63}
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether the API server accepts `value`, apart from constraints and other rules."""
    if value is None:
        return bool(schema.get("nullable", _OPEN in schema))
    return _has_type(value, schema) and _is_enumerated(value, schema) and _is_within(value, schema)


def _has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    match schema.get("type"):
        case "object":
            return isinstance(value, dict) and _object_fits(value, schema)
        case "array":
            return isinstance(value, list) and all(fits(one, schema["items"]) for one in value)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and _fits_into(value, schema["format"])
        case None:
            return True
        case other:
            raise AssertionError(f"none of our types is {other}")


def _object_fits(value: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties")
    # A null where none may be is dropped, and so are fields that the schema does not name.
    there = {name: one for name, one in value.items() if one is not None or properties.get(name, {}).get("nullable")}
    if any(name not in there for name in schema.get("required", ())):
        return False
    if rest is not None:
        return all(fits(one, rest) for one in value.values())
    return all(fits(one, properties[name]) for name, one in there.items() if name in properties)


def _fits_into(value: int, format_: str) -> bool:
    return -_RANGES[format_] <= value < _RANGES[format_]


def _is_enumerated(value: Any, schema: Mapping[str, Any]) -> bool:
    choices = [json.loads(found[1]) for rule in _rules(schema) if (found := _CHOICE.fullmatch(rule))]
    return all(value in one for one in [*choices, *([schema["enum"]] if "enum" in schema else [])])


def _is_within(value: Any, schema: Mapping[str, Any]) -> bool:
    size = len(value) if isinstance(value, list) else 0
    return bool(schema.get("minItems", 0) <= size <= schema.get("maxItems", size))


def _rules(schema: Mapping[str, Any]) -> list[str]:
    return [one["rule"] for one in schema.get("x-kubernetes-validations", ())]
