"""The schema of the resource `setpoint_patch`."""

from typing import Final

from setpoint.terraform.connections.clusters import CLUSTER
from setpoint.terraform.cty.types import BOOL, DYNAMIC, STRING, MapType
from setpoint.terraform.framework.schema import Attribute, NestedAttributes, Presence, TerraformSchema
from setpoint.terraform.resources.schemas import FIELDS, OBJECT_NAMES, WAIT_ATTRIBUTES, computed, computed_id, optional

# The attributes that hold a patch: exactly one of them is set.
PATCH, MERGE_PATCH, JSON_PATCH = FORMS = "patch", "merge_patch", "json_patch"
# The values of `on_destroy`.
RESTORE, LEAVE = "restore", "leave"

PATCH_SCHEMA: Final = TerraformSchema(
    description="Fields of an object that another tool made. They are owned by a field manager of their own, and go "
    "back to what they were when the resource is destroyed.",
    attributes={
        "target": Attribute(
            type=NestedAttributes(OBJECT_NAMES),
            presence=Presence.REQUIRED,
            description="Which object. It exists already; a `setpoint_object` is changed in its manifest instead.",
            requires_replace=True,
        ),
        PATCH: optional(
            DYNAMIC,
            "The fields, as a value or as the text of one YAML document, without apiVersion, kind and "
            "name: merged by server-side apply, lists of objects by their keys.",
        ),
        MERGE_PATCH: optional(
            DYNAMIC,
            "A merge patch (RFC 7386), as a value or as text: null removes, a list replaces the list.",
        ),
        JSON_PATCH: optional(
            DYNAMIC,
            "A JSON patch (RFC 6902), as a list of operations or as text: `add`, `remove`, `replace`, "
            "`move`, `copy`, `test`.",
        ),
        "cluster": CLUSTER,
        "wait_for": optional(
            WAIT_ATTRIBUTES,
            "What is waited for once the object is patched, as for a `setpoint_object`.",
        ),
        "on_timeout": optional(
            STRING,
            "What becomes of a new patch whose wait fails: with `keep`, the default, the next apply goes "
            "on waiting, though Terraform calls that a replacement; with `fail` it is taken back and made anew.",
        ),
        "target_timeout": optional(
            STRING,
            "How long a target is waited for that does not exist yet, as `5m`: one that the same apply "
            "makes, or a controller. Left out, a missing target is an error of the plan.",
        ),
        "on_destroy": optional(
            STRING,
            "What becomes of fields that are no longer patched: with `restore`, the default, they go back "
            "to the values before; with `leave` they stay as they are.",
        ),
        "force_conflicts": optional(
            BOOL,
            "Whether fields are taken over from other field managers that apply them.",
        ),
        "id": computed_id("The ID of the patch: its field manager is `setpoint/terraform-patch/ID`."),
        **FIELDS,
        "before": Attribute(
            type=MapType(STRING),
            presence=Presence.COMPUTED,
            sensitive=True,
            description="What each field was before the patch, as JSON; null where there was none.",
        ),
        "status": computed(
            DYNAMIC,
            "The status of the object, cut to the path of `wait_for.field`; null without such a wait.",
        ),
    },
)
