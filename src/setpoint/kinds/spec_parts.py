"""What the specs of kinds have in common: parts that take no other field, and keys of Secrets."""

from typing import TypeAlias, TypeVar

from msgspec import Struct, UnsetType

T = TypeVar("T")
# A value, an explicit null, or nothing.
Maybe: TypeAlias = T | None | UnsetType


class Part(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A part of a spec: nothing in it that the type does not name."""


class SecretKeyRef(Part, frozen=True):
    """A key of a Secret in the resource's own namespace."""

    name: str
    """The Secret, in the resource's own namespace."""
    key: str
    """The key in it."""


class ValueFrom(Part, frozen=True):
    """Where a value is that is kept in a Secret."""

    secretKeyRef: SecretKeyRef
    """The Secret, and the key in it."""
