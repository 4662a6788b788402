"""CustomResourceDefinitions, generated from the types of each kind."""

from typing import Annotated, Any, Final, Literal

import msgspec

from setpoint.core.schema.openapi import (
    PRESERVE_UNKNOWN_FIELDS,
    DescribeFields,
    OpenApiSchema,
    rules_of,
    schema_of,
    schema_of_node,
)
from setpoint.core.schema.schema_nodes import member_nodes, root_node
from setpoint.core.schema.shape import Keyed
from setpoint.core.values.json_types import Int64, Json, JsonObject
from setpoint.engine.capabilities import keeps_cookie
from setpoint.engine.kind import DescribedType
from setpoint.engine.owners.children import LAST_GENERATED
from setpoint.engine.state import COOKIE, ENGINE_STATE

PART_OF: Final = ("app.kubernetes.io/part-of", "setpoint")
CATEGORY: Final = "setpoint"
# The annotation of the definition of a kind that is a preview, and what its description says.
PREVIEW: Final = "setpoint.dev/preview"
PREVIEW_TEXT: Final = "Preview: no recording of the service shows it to be right yet."
# Members of a status that only the engine writes, each as a whole.
_WRITTEN_WHOLE: Final = (ENGINE_STATE, LAST_GENERATED)
_READY: Final = ".status.conditions[?(@.type=='Ready')]"
_CONTESTED: Final = ".status.conditions[?(@.type=='Contested')]"
_STEP: Final = f".status.{ENGINE_STATE}.step"
# Config Connector's columns, which calls the reason "Status"; and what `setpoint get -o wide` reads from the record.
# A printer column shows a stored value: what is put together from several (DRIFTED), or known to a process alone
# (NEXT LOOK), cannot be one.
COLUMNS: Final[tuple[JsonObject, ...]] = (
    {"name": "Ready", "type": "string", "jsonPath": f"{_READY}.status", "description": "Whether it is as declared."},
    {"name": "Reason", "type": "string", "jsonPath": f"{_READY}.reason", "description": "Why."},
    {
        **{"name": "Status Age", "type": "date", "jsonPath": f"{_READY}.lastTransitionTime"},
        "description": "Since when the status is so.",
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {
        **{"name": "Found", "type": "string", "jsonPath": f"{_STEP}.decision", "priority": 1},
        "description": "What the last step on record found, such as drifted.",
    },
    {
        **{"name": "Contested", "type": "string", "jsonPath": f"{_CONTESTED}.status", "priority": 1},
        "description": "Whether another writer keeps changing it back.",
    },
    {
        **{"name": "Last Look", "type": "date", "jsonPath": f"{_STEP}.at", "priority": 1},
        "description": "When the last step on record looked at the live object.",
    },
    {
        **{"name": "Message", "type": "string", "jsonPath": f"{_READY}.message", "priority": 1},
        "description": "The reason in detail.",
    },
)


class StatusCondition(msgspec.Struct, rename="camel"):
    """A condition of a resource."""

    type: str
    """The type: Ready, and further ones while they hold."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: str = ""
    """The reason, in one word."""
    message: str = ""
    """The reason in detail."""
    last_transition_time: str = ""
    """Since when the condition has this status."""
    observed_generation: Int64 = 0
    """The generation that the condition is about, where it differs from that of the status."""


class CommonStatus(msgspec.Struct, rename="camel"):
    """The status fields that all kinds share; the cookie only of those that keep one."""

    conditions: Annotated[list[StatusCondition], Keyed("type")] = []
    """`Ready` with a reason and a message, and further conditions while they hold."""
    observed_generation: Int64 = 0
    """The generation of the spec that the conditions are about."""
    last_modified_cookie: str = ""
    """The digests of the intent and of the live object when both last agreed: of a kind that keeps a cookie."""
    server_defaults: list[str] = []
    """The fields that the manifest leaves out and that the service sets back to its own value."""
    last_handled_reconcile_at: str = ""
    """The last handled request to reconcile: see the annotation setpoint.dev/reconcile-requested-at."""
    setpoint: dict[str, Any] = {}
    """What the last step did, and where the object is: `setpoint explain` and `setpoint describe` print it."""


def plural_of(kind: DescribedType) -> str:
    """The plural name of a kind, which is the last part of its endpoint."""
    return kind.definition.plural or f"{kind.name.lower()}s"


def engine_status_fields(kind: DescribedType) -> tuple[str, ...]:
    """The members of the status of a kind that the engine relies on; the outputs are not among them."""
    if not kind.definition.has_status:
        return ()
    shared = [one.encode_name for one in msgspec.structs.fields(CommonStatus)]
    outputs = kind.definition.outputs
    own = () if outputs is None else (one.encode_name for one in msgspec.structs.fields(outputs))
    return (
        *(name for name in shared if name != COOKIE or keeps_cookie(kind)),
        *(name for name in own if name == LAST_GENERATED),
    )


def crd_for(kind: DescribedType, describe: DescribeFields) -> JsonObject:
    """The CustomResourceDefinition of `kind`; `describe` gives the docstrings of the fields of a type."""
    label, value = PART_OF
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural_of(kind)}.{kind.group}", "labels": {label: value}, **_preview_mark(kind)},
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced",
            "versions": [_version(kind, describe)],
        },
    }


def _preview_mark(kind: DescribedType) -> JsonObject:
    return {"annotations": {PREVIEW: "true"}} if kind.definition.is_preview else {}


def _names(kind: DescribedType) -> JsonObject:
    found: dict[str, Json] = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": plural_of(kind),
        "singular": kind.name.lower(),
        "shortNames": list(kind.definition.short_names),
        "categories": [*kind.definition.categories, CATEGORY],
    }
    return {name: value for name, value in found.items() if value}


def _version(kind: DescribedType, describe: DescribeFields) -> JsonObject:
    status: JsonObject = {"subresources": {"status": {}}, "additionalPrinterColumns": list(COLUMNS)}
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        **(status if kind.definition.has_status else {}),
        "schema": {"openAPIV3Schema": _schema(kind, describe)},
    }


def _schema(kind: DescribedType, describe: DescribeFields) -> OpenApiSchema:
    (spec,) = (one for one in member_nodes(root_node(kind.tree_type)) if one.name == "spec")
    schema = schema_of_node(spec, describe, rules_in_lists=kind.definition.rules_in_lists)
    written = {"description": "What the author declares.", **schema}
    described = " ".join(filter(None, (kind.definition.description, PREVIEW_TEXT * kind.definition.is_preview)))
    return {
        **({"description": described} if described else {}),
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": written,
            **({"status": _status(kind, describe)} if kind.definition.has_status else {}),
        },
        # A spec without required fields may be left out.
        **({"required": ["spec"]} if "required" in written else {}),
        **rules_of(kind.tree_type),
    }


def _status(kind: DescribedType, describe: DescribeFields) -> OpenApiSchema:
    every, outputs = schema_of(CommonStatus, describe), kind.definition.outputs
    own: OpenApiSchema = (
        {"type": "object", PRESERVE_UNKNOWN_FIELDS: True} if outputs is None else schema_of(outputs, describe)
    )
    # Before the first step the status is empty, whatever the type requires.
    parts: dict[str, Json] = {name: part for name, part in own.items() if name != "required"}
    if kind.definition.required:
        parts["required"] = list(kind.definition.required)
    shared = _properties(every)
    if not keeps_cookie(kind):
        del shared[COOKIE]
    members: dict[str, Json] = {**_properties(own), **shared}
    return {"description": "What setpoint observed and did.", **parts, "properties": members}


def _properties(schema: OpenApiSchema) -> dict[str, Json]:
    found = schema.get("properties", {})
    assert isinstance(found, dict)
    return {name: _one_value(part) if name in _WRITTEN_WHOLE else part for name, part in found.items()}


def _one_value(schema: Json) -> Json:
    """The schema of an object that has one field manager as a whole: managedFields do not list its members."""
    assert isinstance(schema, dict)
    return {**schema, "x-kubernetes-map-type": "atomic"}
