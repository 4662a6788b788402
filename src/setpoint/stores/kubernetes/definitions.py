"""What a cluster has to know before it can keep resources: a CustomResourceDefinition for each kind, from its types."""

from typing import Annotated, Any, Final, Literal

import msgspec

from setpoint.core.numbers import Int64
from setpoint.core.openapi import ANYTHING, Describe, Schema, schema_at, schema_of
from setpoint.core.places import members_of, top_of
from setpoint.core.shape import Keyed
from setpoint.core.values import Json
from setpoint.engine.kind import Sort
from setpoint.engine.resource import Tree

PART_OF: Final = ("app.kubernetes.io/part-of", "setpoint")
CATEGORY: Final = "setpoint"
_READY: Final = ".status.conditions[?(@.type=='Ready')]"
# Config Connector's columns; it calls the reason "Status".
COLUMNS: Final[tuple[Tree, ...]] = (
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


class EveryStatus(msgspec.Struct, rename="camel"):
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


def plural_of(kind: Sort) -> str:
    """What a cluster calls many of them, and the last part of their address."""
    return kind.definition.plural or f"{kind.name.lower()}s"


def definition_of(kind: Sort, describe: Describe) -> Tree:
    """The CustomResourceDefinition of `kind`; `describe` says what stands below each field of a type."""
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


def _names(kind: Sort) -> Tree:
    found: dict[str, Json] = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": plural_of(kind),
        "singular": kind.name.lower(),
        "shortNames": list(kind.definition.short_names),
        "categories": [*kind.definition.categories, CATEGORY],
    }
    return {name: value for name, value in found.items() if value}


def _version(kind: Sort, describe: Describe) -> Tree:
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": list(COLUMNS),
        "schema": {"openAPIV3Schema": _schema(kind, describe)},
    }


def _schema(kind: Sort, describe: Describe) -> Schema:
    (spec,) = (one for one in members_of(top_of(kind.tree_type)) if one.name == "spec")
    written = {"description": "What the author asks for.", **schema_at(spec, describe)}
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
        # A spec that needs nothing may be left out altogether.
        **({"required": ["spec"]} if "required" in written else {}),
    }


def _status(kind: Sort, describe: Describe) -> Schema:
    every, outputs = schema_of(EveryStatus, describe), kind.definition.outputs
    own: Schema = {"type": "object", ANYTHING: True} if outputs is None else schema_of(outputs, describe)
    # Before the first look there is nothing to show, whatever the type says.
    parts: dict[str, Json] = {name: part for name, part in own.items() if name != "required"}
    if kind.definition.required:
        parts["required"] = list(kind.definition.required)
    return {"description": "What was found out.", **parts, "properties": {**_properties(own), **_properties(every)}}


def _properties(schema: Schema) -> dict[str, Json]:
    found = schema.get("properties", {})
    assert isinstance(found, dict)
    return found
