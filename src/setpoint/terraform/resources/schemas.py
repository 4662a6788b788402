"""The schemas of the resources `setpoint_object` and `setpoint_wait`."""

from types import UnionType
from typing import Final, get_args

from setpoint.core.wait.wait_for import WAIT_CRITERIA, WaitCriterion
from setpoint.terraform.connections.clusters import CLUSTER
from setpoint.terraform.cty.types import BOOL, DYNAMIC, STRING, CtyType, ListType, MapType, ObjectType
from setpoint.terraform.framework.schema import Attribute, NestedAttributes, Presence, TerraformSchema
from setpoint.terraform.resources.vocabulary import attribute_name

# The values of `on_timeout`.
KEEP, FAIL = "keep", "fail"

# Descriptions in the terms of a configuration, where they differ from those of a manifest.
_WAIT_DESCRIPTIONS: Final = {
    "field": "Until there is a value at this path, such as `status.loadBalancer.ingress`: it becomes "
    "known to dependent resources.",
    "fieldValue": 'Until each of these paths has its value: `{ "status.phase" = "Running" }`.',
    "condition": "Until this condition is `True`, such as `Ready`.",
}


def optional(type_: CtyType | NestedAttributes, description: str) -> Attribute:
    """An attribute that a configuration may set."""
    return Attribute(type=type_, presence=Presence.OPTIONAL, description=description)


def computed(type_: CtyType | NestedAttributes, description: str) -> Attribute:
    """An attribute that only the provider sets."""
    return Attribute(type=type_, presence=Presence.COMPUTED, description=description)


def _wait_attribute(criterion: type[WaitCriterion]) -> Attribute:
    description = _WAIT_DESCRIPTIONS.get(criterion.member, criterion.description)
    return optional(_attribute_type(criterion.accepts), description)


def _attribute_type(accepts: object) -> CtyType:
    """The one type of the attribute for a member of a spec: text where that is accepted."""
    types = get_args(accepts) if isinstance(accepts, UnionType) else (accepts,)
    if str in types:
        return STRING
    return BOOL if bool in types else DYNAMIC


WAIT_ATTRIBUTES: Final = NestedAttributes(
    {
        **{attribute_name(one.member): _wait_attribute(one) for one in WAIT_CRITERIA},
        "timeout": optional(STRING, "How long, as `90s` or `10m`. By default `10m`."),
    }
)
_CRITERIA: Final = [f"`{attribute_name(one.member)}`" for one in WAIT_CRITERIA]
_ONE_CRITERION: Final = f"exactly one of {', '.join(_CRITERIA[:-1])} and {_CRITERIA[-1]}"
OBJECT_REF: Final = ObjectType(dict.fromkeys(("api_version", "kind", "name", "namespace"), STRING))

# What the cluster has of the fields that a resource declares.
FIELDS: Final = {
    "projection": Attribute(
        type=MapType(STRING),
        presence=Presence.COMPUTED,
        sensitive=True,
        description="Every declared field, as the cluster has it; the values of a Secret hidden.",
    ),
    "fields": computed(
        MapType(STRING),
        "The same fields for plans to show: values where no secret stands, and of any other value a "
        "version, which changes when the value does.",
    ),
}


def computed_id(description: str) -> Attribute:
    """The attribute `id`: set by a create, and the same from then on."""
    return Attribute(type=STRING, presence=Presence.COMPUTED, use_state_for_unknown=True, description=description)


OBJECT_SCHEMA: Final = TerraformSchema(
    description="An object in a Kubernetes cluster, managed by server-side apply. Only declared fields are compared.",
    attributes={
        "yaml_body": optional(STRING, "The object, as the text of one YAML document."),
        "manifest": optional(DYNAMIC, "The object, as a value."),
        "cluster": CLUSTER,
        "wait_for": optional(
            WAIT_ATTRIBUTES,
            f"What is waited for once the object is as declared: {_ONE_CRITERION}.",
        ),
        "on_timeout": optional(
            STRING,
            "What becomes of a new object whose wait fails: with `keep`, the default, the next apply goes "
            "on waiting for the same object, though Terraform calls that a replacement; with `fail` it is replaced.",
        ),
        "ignore_fields": optional(
            ListType(STRING),
            "Paths that are set at creation and then left to other field managers: `spec.replicas`.",
        ),
        "delete_protection": optional(BOOL, "Whether the object must not be deleted, nor replaced."),
        "delete_timeout": optional(STRING, "How long finalizers may hold it. By default `5m`."),
        "force_conflicts": optional(
            BOOL,
            "Whether fields are taken over from other field managers that declare them.",
        ),
        "take_over_from": optional(
            ListType(STRING),
            "Field managers that no longer apply the object, such as `Terraform` for a former "
            "`kubernetes_manifest`: their fields become this resource's, and go when the manifest leaves them out.",
        ),
        "id": computed_id("The ID of the resource that manages the object."),
        "object_ref": computed(OBJECT_REF, "Which object it is."),
        **FIELDS,
        "status": computed(
            DYNAMIC,
            "The status of the object, cut to the path of `wait_for.field`; null without such a wait. Of a "
            "path that is not in the status, the object cut to it.",
        ),
    },
)


def _name_attribute(presence: Presence, description: str) -> Attribute:
    return Attribute(type=STRING, presence=presence, description=description)


# The attributes that name an object, as in `object_ref` of a `setpoint_object`.
OBJECT_NAMES: Final = {
    "api_version": _name_attribute(Presence.REQUIRED, "Its group and version, such as `apps/v1`."),
    "kind": _name_attribute(Presence.REQUIRED, "Its kind."),
    "name": _name_attribute(Presence.REQUIRED, "Its name."),
    "namespace": _name_attribute(
        Presence.OPTIONAL, "Its namespace, if its kind has one and it is not the default one."
    ),
}
WAIT_SCHEMA: Final = TerraformSchema(
    description="Waits for an object that another controller manages. It may not exist yet. Nothing is ever written.",
    attributes={
        "object_ref": Attribute(
            type=NestedAttributes(OBJECT_NAMES),
            presence=Presence.REQUIRED,
            description="Which object.",
            requires_replace=True,
        ),
        "cluster": CLUSTER,
        "wait_for": Attribute(
            type=WAIT_ATTRIBUTES,
            presence=Presence.REQUIRED,
            description=f"What is waited for: {_ONE_CRITERION}.",
        ),
        "id": computed_id("Which wait it is."),
        "result": computed(
            DYNAMIC,
            "The object, cut to the path of `wait_for.field`; null for any other wait.",
        ),
    },
)
