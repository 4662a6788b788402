"""CustomResourceDefinitions, generated from the types of each kind."""

from typing import Annotated, Any, Final, Literal

import msgspec

from setpoint.core.schema.openapi import (
    PRESERVE_UNKNOWN_FIELDS,
    DescribeFields,
    OpenApiSchema,
    member_nodes,
    root_node,
    schema_of,
    schema_of_node,
)
from setpoint.core.schema.shape import Keyed
from setpoint.core.values.json_types import Int64, Json, JsonObject
from setpoint.engine.kind import ResourceType

PART_OF: Final = ("app.kubernetes.io/part-of", "setpoint")
CATEGORY: Final = "setpoint"
_READY: Final = ".status.conditions[?(@.type=='Ready')]"
# Config Connector's columns; it calls the reason "Status".
COLUMNS: Final[tuple[JsonObject, ...]] = (
    {"name": "Ready", "type": "string", "jsonPath": f"{_READY}.status", "description": "Whether it is as declared."},
    {"name": "Reason", "type": "string", "jsonPath": f"{_READY}.reason", "description": "Why."},
    {
        **{"name": "Status Age", "type": "date", "jsonPath": f"{_READY}.lastTransitionTime"},
        "description": "Since when it is so.",
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {
        **{"name": "Message", "type": "string", "jsonPath": f"{_READY}.message", "priority": 1},
        "description": "The whole story.",
    },
)


class StatusCondition(msgspec.Struct, rename="camel"):
    """One thing that can be said about a resource."""

    type: str
    """What it is about: Ready, and others while they hold."""
    status: Literal["True", "False", "Unknown"]
    """Whether it is so."""
    reason: str = ""
    """Why, in one word."""
    message: str = ""
    """Why, in words."""
    last_transition_time: str = ""
    """Since when the status is what it is."""
    observed_generation: Int64 = 0
    """The generation that it speaks of, where that is another one than the status' own."""


class CommonStatus(msgspec.Struct, rename="camel"):
    """What the status of every kind may show."""

    conditions: Annotated[list[StatusCondition], Keyed("type")] = []
    """`Ready` with a reason and a message, and others while they hold."""
    observed_generation: Int64 = 0
    """The generation of the spec that the conditions speak of."""
    last_modified_cookie: str = ""
    """The digests of the intent and of the live object when both last agreed."""
    server_defaults: list[str] = []
    """The fields that the manifest leaves out and on whose value the service insists."""
    last_handled_reconcile_at: str = ""
    """The last request for a look that was taken up: see the annotation setpoint.dev/reconcile-requested-at."""
    setpoint: dict[str, Any] = {}
    """What the last step did, and where the object is: `setpoint explain` and `setpoint describe` tell it in words."""


def plural_of(kind: ResourceType) -> str:
    """The plural name of a kind, which is the last part of its endpoint."""
    return kind.definition.plural or f"{kind.name.lower()}s"


def crd_for(kind: ResourceType, describe: DescribeFields) -> JsonObject:
    """The CustomResourceDefinition of `kind`; `describe` gives the docstrings of the fields of a type."""
    label, value = PART_OF
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural_of(kind)}.{kind.group}", "labels": {label: value}},
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced",
            "versions": [_version(kind, describe)],
        },
    }


def _names(kind: ResourceType) -> JsonObject:
    found: dict[str, Json] = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": plural_of(kind),
        "singular": kind.name.lower(),
        "shortNames": list(kind.definition.short_names),
        "categories": [*kind.definition.categories, CATEGORY],
    }
    return {name: value for name, value in found.items() if value}


def _version(kind: ResourceType, describe: DescribeFields) -> JsonObject:
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": list(COLUMNS),
        "schema": {"openAPIV3Schema": _schema(kind, describe)},
    }


def _schema(kind: ResourceType, describe: DescribeFields) -> OpenApiSchema:
    (spec,) = (one for one in member_nodes(root_node(kind.tree_type)) if one.name == "spec")
    written = {"description": "What the author asks for.", **schema_of_node(spec, describe)}
    described = kind.definition.description
    return {
        **({"description": described} if described else {}),
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": written,
            "status": _status(kind, describe),
        },
        # A spec without required fields may be left out.
        **({"required": ["spec"]} if "required" in written else {}),
    }


def _status(kind: ResourceType, describe: DescribeFields) -> OpenApiSchema:
    every, outputs = schema_of(CommonStatus, describe), kind.definition.outputs
    own: OpenApiSchema = (
        {"type": "object", PRESERVE_UNKNOWN_FIELDS: True} if outputs is None else schema_of(outputs, describe)
    )
    # Before the first step the status is empty, whatever the type requires.
    parts: dict[str, Json] = {name: part for name, part in own.items() if name != "required"}
    if kind.definition.required:
        parts["required"] = list(kind.definition.required)
    return {"description": "What was found out.", **parts, "properties": {**_properties(own), **_properties(every)}}


def _properties(schema: OpenApiSchema) -> dict[str, Json]:
    found = schema.get("properties", {})
    assert isinstance(found, dict)
    return found
