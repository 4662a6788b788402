"""JSON Schema of manifests, for editors: made from the CustomResourceDefinitions, so that both say the same.

One document for all kinds. Which part counts follows from `apiVersion` and `kind`; of other kinds it says nothing.
"""

from collections.abc import Collection, Mapping
from typing import Final

from setpoint.app.kind_reference import annotations_of
from setpoint.app.kinds import all_types, definitions_of
from setpoint.app.plugins import Plugins
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.json_types import Json, JsonObject

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
# Members of a schema that hold schemas: by name, one, or several.
_NAMED: Final = ("properties", "patternProperties")
_SINGLE: Final = ("items", "additionalProperties", "not")
_SEVERAL: Final = ("allOf", "anyOf", "oneOf")
_TEXTS: Final[JsonObject] = {"type": "object", "additionalProperties": {"type": "string"}}


def manifest_schema(names: Collection[GroupKind], plugins: Plugins) -> JsonObject:
    """The schema of manifests of these kinds."""
    definitions = definitions_of(names, plugins)
    types = all_types(plugins)
    kinds: dict[str, Json] = {}
    for name, definition in definitions.items():
        annotations = dict(annotations_of(types[name])) if name in types else {}
        kinds[f"{name[1]}.{name[0]}"] = _kind_schema(definition, annotations)
    return {
        "$schema": _DRAFT,
        "title": "Manifests of setpoint",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": _suggested({f"{group}/{_version(one)['name']}" for (group, _), one in definitions.items()}),
            "kind": _suggested({kind for _, kind in definitions}),
        },
        "allOf": [_choice(name, definition) for name, definition in definitions.items()],
        "definitions": kinds,
    }


def _suggested(values: Collection[str]) -> Json:
    """Any text; an editor offers these."""
    return {"type": "string", "anyOf": [{"enum": sorted(values)}, {}]}


def _choice(name: GroupKind, definition: JsonObject) -> Json:
    """A manifest of the kind is as its schema says."""
    group, kind = name
    named: Json = {
        "apiVersion": {"const": f"{group}/{_version(definition)['name']}"},
        "kind": {"const": kind},
    }
    return {
        "if": {"properties": named, "required": ["apiVersion", "kind"]},
        "then": {"$ref": f"#/definitions/{kind}.{group}"},
    }


def _kind_schema(definition: JsonObject, annotations: Mapping[str, str]) -> Json:
    found = _version(definition)["schema"]
    assert isinstance(found, dict)
    whole = _converted(found["openAPIV3Schema"])
    assert isinstance(whole, dict)
    properties = whole["properties"]
    assert isinstance(properties, dict)
    required = whole.get("required")
    members: Json = {**properties, "metadata": _metadata(annotations), "status": {}}
    others = [one for one in required if isinstance(one, str)] if isinstance(required, list) else []
    return {
        **whole,
        "properties": members,
        "required": sorted({"apiVersion", "kind", "metadata", *others}),
        "additionalProperties": False,
    }


def _metadata(annotations: Mapping[str, str]) -> Json:
    known: Json = {key: {"type": "string", "description": meaning} for key, meaning in annotations.items()}
    return {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": "The name of the resource in its namespace."},
            "namespace": {"type": "string", "description": "The namespace of the resource."},
            "labels": _TEXTS,
            "annotations": {**_TEXTS, "properties": known},
        },
    }


def _converted(schema: Json) -> Json:
    """A schema of Kubernetes as JSON Schema; an object that lists its members has no others."""
    if not isinstance(schema, dict):
        return schema
    made = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-") and key != "nullable"}
    made.update({key: _converted(made[key]) for key in _SINGLE if key in made})
    for key in _NAMED:
        if isinstance(named := made.get(key), dict):
            made[key] = {name: _converted(one) for name, one in named.items()}
    for key in _SEVERAL:
        if isinstance(several := made.get(key), list):
            made[key] = [_converted(one) for one in several]
    if schema.get(_INT_OR_STRING):
        made["type"] = ["integer", "string"]
    if "properties" in made and "additionalProperties" not in made and not schema.get(_PRESERVE):
        made["additionalProperties"] = False
    return _with_null(made) if schema.get("nullable") else made


def _with_null(schema: dict[str, Json]) -> Json:
    found = schema.get("type")
    if found is None:
        return schema
    types: list[Json] = [*found] if isinstance(found, list) else [found]
    made: dict[str, Json] = {**schema, "type": [*types, "null"]}
    if isinstance(values := schema.get("enum"), list) and None not in values:
        made["enum"] = [*values, None]
    return made


def _version(definition: JsonObject) -> JsonObject:
    """The version of a definition that manifests have: each has one."""
    spec = definition["spec"]
    assert isinstance(spec, dict)
    versions = spec["versions"]
    assert isinstance(versions, list)
    (found,) = (one for one in versions if isinstance(one, dict) and one["storage"])
    return found
