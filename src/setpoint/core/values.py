"""What a JSON value is here, and the mark for one that is not there."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import UNSET, UnsetType

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None

# Absent is neither null nor unknown. It is msgspec's own mark, so that a field a typed spec
# leaves out and a path a tree does not have are the same thing.
Missing: TypeAlias = UnsetType
MISSING: Final = UNSET
