"""The schemas of the data sources `setpoint_object` and `setpoint_objects` and of the ephemeral `setpoint_secret`."""

from typing import Final

from setpoint.terraform.connections.clusters import CLUSTER
from setpoint.terraform.cty.types import BOOL, DYNAMIC, NUMBER, STRING, MapType
from setpoint.terraform.framework.schema import Attribute, Presence, TerraformSchema
from setpoint.terraform.resources.schemas import OBJECT_NAMES, computed, optional

# So many objects a list may have where the configuration does not say.
DEFAULT_LIMIT: Final = 1000
LARGEST_LIMIT: Final = 10_000


def _secret(description: str) -> Attribute:
    return Attribute(type=MapType(STRING), presence=Presence.COMPUTED, sensitive=True, description=description)


_TEXT: Final = "The values of the Secret that are text, decoded, by key"
_BASE64: Final = "All values of the Secret, in base64, by key"

OBJECT_SOURCE_SCHEMA: Final = TerraformSchema(
    description="An object of a Kubernetes cluster, as it is.",
    attributes={
        **OBJECT_NAMES,
        "cluster": CLUSTER,
        "optional": optional(BOOL, "Whether it may be missing: then what is computed is null."),
        "read_secrets": optional(
            BOOL,
            "Whether the values of a Secret are read, into `secret_data` and `secret_data_base64`. Terraform keeps "
            "them in its state; the ephemeral resource `setpoint_secret` leaves them out of it.",
        ),
        "object": computed(
            DYNAMIC,
            "The object, without its managedFields; a Secret without its values.",
        ),
        "yaml_body": computed(STRING, "The same as YAML."),
        "secret_data": _secret(f"{_TEXT}; null without `read_secrets`."),
        "secret_data_base64": _secret(f"{_BASE64}; null without `read_secrets`."),
    },
)

OBJECTS_SOURCE_SCHEMA: Final = TerraformSchema(
    description="The objects of one kind in a Kubernetes cluster, by selector.",
    attributes={
        "api_version": OBJECT_NAMES["api_version"],
        "kind": Attribute(type=STRING, presence=Presence.REQUIRED, description="Their kind."),
        "namespace": optional(STRING, "Their namespace, if their kind has one and it is not the default one."),
        "all_namespaces": optional(BOOL, "Whether those of all namespaces are listed."),
        "label_selector": optional(STRING, "Only those with these labels: `app=web,tier in (a, b)`."),
        "field_selector": optional(
            STRING, "Only those with these fields, as far as the API server selects by them: `spec.nodeName=a`."
        ),
        "limit": optional(
            NUMBER, f"How many there may be; more are an error. By default {DEFAULT_LIMIT}, at most {LARGEST_LIMIT}."
        ),
        "cluster": CLUSTER,
        "objects": computed(
            DYNAMIC,
            "The objects by `namespace/name`, or by `name` where their kind has no namespace; each without "
            "its managedFields, a Secret without its values.",
        ),
    },
)

SECRET_SCHEMA: Final = TerraformSchema(
    description="The values of a Secret, for this run of Terraform: they are in no plan and in no state.",
    attributes={
        "name": Attribute(type=STRING, presence=Presence.REQUIRED, description="Its name."),
        "namespace": optional(STRING, "Its namespace, if it is not the default one."),
        "cluster": CLUSTER,
        "data": _secret(f"{_TEXT}."),
        "data_base64": _secret(f"{_BASE64}."),
    },
)
