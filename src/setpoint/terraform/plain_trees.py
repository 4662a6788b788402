"""Terraform's values as trees of JSON, all of which is known."""

from collections.abc import Mapping
from decimal import Decimal

from setpoint.core.values import Json
from setpoint.errors import Bug
from setpoint.terraform.cty_values import Unknown, Value
from setpoint.terraform.plain_values import Plain, to_plain


def tree_of(value: Value) -> Json:
    """The tree of JSON that a value is. A fraction that no double has is rounded to the next one."""
    return _tree(to_plain(value))


def _tree(plain: Plain) -> Json:
    match plain:
        case None | bool() | int() | float() | str():
            return plain
        case Decimal():
            return float(plain)
        case Unknown():
            raise Bug("a value that is not known yet was taken for a known one")
        case Mapping():
            return {key: _tree(one) for key, one in plain.items()}
        case _:
            return [_tree(one) for one in plain]
