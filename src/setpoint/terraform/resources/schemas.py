"""The schemas of the resources `setpoint_object` and `setpoint_wait`."""

from types import UnionType
from typing import Final, get_args

from setpoint.core.wait.wait_for import WAIT_CRITERIA, WaitCriterion
from setpoint.terraform.cty.types import BOOL, DYNAMIC, STRING, CtyType, ListType, MapType, ObjectType
from setpoint.terraform.framework.schema import Attribute, NestedAttributes, Presence, TerraformSchema
from setpoint.terraform.resources.clusters import CLUSTER
from setpoint.terraform.resources.vocabulary import attribute_name

_OPTIONAL, _COMPUTED = Presence.OPTIONAL, Presence.COMPUTED
# The values of `on_timeout`.
KEEP, FAIL = "keep", "fail"

# Descriptions in the terms of a configuration, where they differ from those of a manifest.
_WAIT_DESCRIPTIONS: Final = {
    "field": "Until there is a value at this path, such as `status.loadBalancer.ingress`: it becomes "
    "known to dependent resources.",
    "fieldValue": 'Until each of these paths has its value: `{ "status.phase" = "Running" }`.',
    "condition": "Until this condition is `True`, such as `Ready`.",
}


def _wait_attribute(criterion: type[WaitCriterion]) -> Attribute:
    description = _WAIT_DESCRIPTIONS.get(criterion.member, criterion.description)
    return Attribute(type=_attribute_type(criterion.accepts), presence=_OPTIONAL, description=description)


def _attribute_type(accepts: object) -> CtyType:
    """The one type of the attribute for a member of a spec: text where that is accepted."""
    types = get_args(accepts) if isinstance(accepts, UnionType) else (accepts,)
    if str in types:
        return STRING
    return BOOL if bool in types else DYNAMIC


WAIT_ATTRIBUTES: Final = NestedAttributes(
    {
        **{attribute_name(one.member): _wait_attribute(one) for one in WAIT_CRITERIA},
        "timeout": Attribute(
            type=STRING, presence=_OPTIONAL, description="How long, as `90s` or `10m`. By default `10m`."
        ),
    }
)
_CRITERIA: Final = [f"`{attribute_name(one.member)}`" for one in WAIT_CRITERIA]
_ONE_CRITERION: Final = f"exactly one of {', '.join(_CRITERIA[:-1])} and {_CRITERIA[-1]}"
OBJECT_REF: Final = ObjectType(dict.fromkeys(("api_version", "kind", "name", "namespace"), STRING))

OBJECT_SCHEMA: Final = TerraformSchema(
    description="An object in a Kubernetes cluster, managed by server-side apply. Only declared fields are compared.",
    attributes={
        "yaml_body": Attribute(
            type=STRING, presence=_OPTIONAL, description="The object, as the text of one YAML document."
        ),
        "manifest": Attribute(type=DYNAMIC, presence=_OPTIONAL, description="The object, as a value."),
        "cluster": CLUSTER,
        "wait_for": Attribute(
            type=WAIT_ATTRIBUTES,
            presence=_OPTIONAL,
            description=f"What is waited for once the object is as declared: {_ONE_CRITERION}.",
        ),
        "on_timeout": Attribute(
            type=STRING,
            presence=_OPTIONAL,
            description="What becomes of a new object whose wait fails: with `keep`, the default, the next apply goes "
            "on waiting for the same object, though Terraform calls that a replacement; with `fail` it is replaced.",
        ),
        "ignore_fields": Attribute(
            type=ListType(STRING),
            presence=_OPTIONAL,
            description="Paths that are set at creation and then left to other field managers: `spec.replicas`.",
        ),
        "delete_protection": Attribute(
            type=BOOL, presence=_OPTIONAL, description="Whether the object must not be deleted, nor replaced."
        ),
        "delete_timeout": Attribute(
            type=STRING, presence=_OPTIONAL, description="How long finalizers may hold it. By default `5m`."
        ),
        "force_conflicts": Attribute(
            type=BOOL,
            presence=_OPTIONAL,
            description="Whether fields are taken over from other field managers that declare them.",
        ),
        "take_over_from": Attribute(
            type=ListType(STRING),
            presence=_OPTIONAL,
            description="Field managers that no longer apply the object, such as `Terraform` for a former "
            "`kubernetes_manifest`: their fields become this resource's, and go when the manifest leaves them out.",
        ),
        "id": Attribute(
            type=STRING,
            presence=_COMPUTED,
            use_state_for_unknown=True,
            description="The ID of the resource that manages the object.",
        ),
        "object_ref": Attribute(type=OBJECT_REF, presence=_COMPUTED, description="Which object it is."),
        "projection": Attribute(
            type=MapType(STRING),
            presence=_COMPUTED,
            sensitive=True,
            description="Every field that the manifest declares, as the cluster has it; the values of a Secret hidden.",
        ),
        "fields": Attribute(
            type=MapType(STRING),
            presence=_COMPUTED,
            description="The same fields for plans to show: values where no secret stands, and of any other value a "
            "version, which changes when the value does.",
        ),
        "status": Attribute(
            type=DYNAMIC,
            presence=_COMPUTED,
            description="The status of the object, cut to the path of `wait_for.field`; null without such a wait. Of a "
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
        "id": Attribute(type=STRING, presence=_COMPUTED, use_state_for_unknown=True, description="Which wait it is."),
        "result": Attribute(
            type=DYNAMIC,
            presence=_COMPUTED,
            description="The object, cut to the path of `wait_for.field`; null for any other wait.",
        ),
    },
)
