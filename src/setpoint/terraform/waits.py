"""What an attribute `wait_for` says, in the form of a manifest."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.values import Json
from setpoint.core.wait_for import parse_wait
from setpoint.errors import SetpointError
from setpoint.terraform.cty_values import Value, is_known
from setpoint.terraform.diagnostics import Refused, error
from setpoint.terraform.plain_trees import tree_of
from setpoint.terraform.wording import in_terraform

_NAMES: Final = {"field": "field", "field_value": "fieldValue", "condition": "condition", "rollout": "rollout"}


def wait_tree(wait_for: Value) -> dict[str, Json] | None:
    """A wait in the form of a manifest; None where there is none, or it is not known yet."""
    if not isinstance(wait_for, Mapping) or not is_known(wait_for):
        return None
    said = {name: tree_of(one) for name, one in wait_for.items() if one is not None}
    timeout: dict[str, Json] = {"timeout": said["timeout"]} if "timeout" in said else {}
    return {**{_NAMES[name]: one for name, one in said.items() if name in _NAMES}, **timeout}


def waits_for_value(wait_for: Value) -> bool:
    """Whether it is a value that is waited for; it may be where that is not known yet."""
    if not isinstance(wait_for, Mapping):
        return not is_known(wait_for)
    return wait_for.get("field") is not None


def check_wait(wait_for: Value) -> None:
    """Refuses a wait that means nothing, as far as it is known yet."""
    wait = wait_tree(wait_for)
    if wait is not None:
        try:
            parse_wait(wait)
        except SetpointError as fault:
            raise Refused(error("No such wait", in_terraform(str(fault)), ("wait_for",))) from fault
