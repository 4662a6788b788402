"""The attribute `wait_for`: what is waited for once an object is as declared."""

from typing import Final

from setpoint.terraform.cty_types import BOOL, DYNAMIC, STRING
from setpoint.terraform.schema import Attribute, Nested, Presence

_OPTIONAL: Final = Presence.OPTIONAL

WAIT: Final = Nested(
    {
        "field": Attribute(
            type=STRING,
            presence=_OPTIONAL,
            description="Until there is something at this path, such as `status.loadBalancer.ingress`: it becomes "
            "known to others.",
        ),
        "field_value": Attribute(
            type=DYNAMIC,
            presence=_OPTIONAL,
            description='Until each of these paths has its value: `{ "status.phase" = "Running" }`.',
        ),
        "condition": Attribute(
            type=STRING, presence=_OPTIONAL, description="Until this condition is `True`, such as `Ready`."
        ),
        "rollout": Attribute(
            type=BOOL,
            presence=_OPTIONAL,
            description="Until a Deployment, StatefulSet, DaemonSet or Job runs what its spec says and nothing older.",
        ),
        "timeout": Attribute(
            type=STRING, presence=_OPTIONAL, description="How long, as `90s` or `10m`. By default `10m`."
        ),
    }
)
