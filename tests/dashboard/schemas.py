"""Checks values against schemas of an OpenAPI document: as much of JSON Schema as the document uses."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
_KNOWN: Final = {
    *("$ref", "type", "title", "description", "properties", "required", "items", "anyOf", "enum", "const"),
    *("additionalProperties", "default"),
}


def problems(value: Any, schema: Mapping[str, Any], document: Mapping[str, Any], at: str = "$") -> Iterator[str]:
    """What of a value is not as the schema says; members that the schema does not have are wrong, too."""
    assert schema.keys() <= _KNOWN, f"{at}: this check does not know all of {sorted(schema)}"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield from problems(value, document["components"]["schemas"][name], document, at)
        return
    if "anyOf" in schema:
        found = [list(problems(value, one, document, at)) for one in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
        return
    yield from _value_problems(value, schema, at)
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from problems(one, schema.get("items", {}), document, f"{at}[{index}]")
    if isinstance(value, dict):
        yield from _object_problems(value, schema, document, at)


def _value_problems(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    type_ = schema.get("type")
    if type_ is not None:
        is_number = type_ in ("integer", "number")
        if not isinstance(value, _TYPES[type_]) or (is_number and isinstance(value, bool)):
            yield f"{at}: {value!r} is no {type_}"


def _object_problems(
    value: Mapping[str, Any], schema: Mapping[str, Any], document: Mapping[str, Any], at: str
) -> Iterator[str]:
    properties = schema.get("properties", {})
    yield from (f"{at}.{name} is missing" for name in schema.get("required", ()) if name not in value)
    rest = schema.get("additionalProperties", "properties" not in schema)
    for name, one in value.items():
        if name in properties:
            yield from problems(one, properties[name], document, f"{at}.{name}")
        elif rest is False:
            yield f"{at}.{name} is not in the schema"
        elif isinstance(rest, Mapping):
            yield from problems(one, rest, document, f"{at}.{name}")
