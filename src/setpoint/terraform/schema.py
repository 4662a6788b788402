"""What a configuration may say: attributes, nested as deep as one likes."""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import assert_never

import msgspec

from setpoint.terraform.cty_types import ListOf, MapOf, ObjectOf, SetOf, Type


class Presence(Enum):
    """Who gives an attribute its value."""

    REQUIRED = "the author"
    OPTIONAL = "the author, or nobody"
    COMPUTED = "the provider"
    OPTIONAL_COMPUTED = "the author, or else the provider"

    @property
    def is_computed(self) -> bool:
        """Whether the provider gives a value where the author gave none."""
        return self in (Presence.COMPUTED, Presence.OPTIONAL_COMPUTED)

    @property
    def is_optional(self) -> bool:
        """Whether the author may give a value, and need not."""
        return self in (Presence.OPTIONAL, Presence.OPTIONAL_COMPUTED)


class Nesting(IntEnum):
    """How many objects a nested attribute holds, and how they are told apart; numbers as on the wire."""

    SINGLE = 1
    LIST = 2
    SET = 3
    MAP = 4


class Nested(msgspec.Struct, frozen=True):
    """Objects with attributes of their own."""

    attributes: Mapping[str, "Attribute"]
    nesting: Nesting = Nesting.SINGLE


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a configuration says, or that the provider adds."""

    type: Type | Nested
    presence: Presence
    # In Markdown.
    description: str = ""
    deprecated: bool = False
    # Not shown in plans.
    sensitive: bool = False
    # Handed over with the configuration, and never stored.
    write_only: bool = False
    # A change takes a new object.
    replaces: bool = False
    # Computed once: an update does not change it.
    stays: bool = False


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of a provider, resource or data source."""

    attributes: Mapping[str, Attribute]
    # Raised when a stored state is no longer read as it is.
    version: int = 0
    description: str = ""
    deprecated: bool = False


def schema_type(schema: Schema) -> ObjectOf:
    """The type of the values that a schema allows."""
    return _object_of(schema.attributes)


def attribute_type(attribute: Attribute) -> Type:
    """The type of the values of an attribute, nested or not."""
    if not isinstance(attribute.type, Nested):
        return attribute.type
    inner = _object_of(attribute.type.attributes)
    match attribute.type.nesting:
        case Nesting.SINGLE:
            return inner
        case Nesting.LIST:
            return ListOf(inner)
        case Nesting.SET:
            return SetOf(inner)
        case Nesting.MAP:
            return MapOf(inner)
        case _:
            assert_never(attribute.type.nesting)


def _object_of(attributes: Mapping[str, Attribute]) -> ObjectOf:
    return ObjectOf({name: attribute_type(one) for name, one in attributes.items()})
