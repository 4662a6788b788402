"""The types that Terraform has seen before, for values that were read back from JSON."""

from collections.abc import Mapping

from setpoint.terraform.cty.json_trees import from_untyped, to_untyped
from setpoint.terraform.cty.types import DYNAMIC
from setpoint.terraform.cty.values import CtyValue, Dynamic, same_value


def with_prior_types(value: CtyValue, before: CtyValue) -> CtyValue:
    """`value`, with the dynamic types of `before` wherever both are the same JSON tree.

    JSON does not distinguish lists from tuples, nor maps from objects. Without this, Terraform would show a dynamic
    value that was read back from JSON as a change.
    """
    match value, before:
        case (_, Dynamic()) if _is_same_tree(value, before):
            return before
        case (tuple(), tuple()) if len(value) == len(before):
            return tuple(with_prior_types(one, other) for one, other in zip(value, before, strict=True))
        case (Mapping(), Mapping()):
            return {key: with_prior_types(one, before.get(key)) for key, one in value.items()}
        case _:
            return value


def _is_same_tree(value: CtyValue, other: CtyValue) -> bool:
    return same_value(from_untyped(to_untyped(value), DYNAMIC), from_untyped(to_untyped(other), DYNAMIC), DYNAMIC)
