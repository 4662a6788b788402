"""How much of the past a store keeps."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """The newest of each are kept. `changes` is how far a watch can go back."""

    changes: int = 10_000
    notes: int = 10_000
    notes_per_resource: int = 50

    def __post_init__(self) -> None:
        if min(self.changes, self.notes, self.notes_per_resource) < 1:
            raise ValueError(f"a store keeps at least one of everything: {self}")


DEFAULT_LIMITS: Final = Limits()
