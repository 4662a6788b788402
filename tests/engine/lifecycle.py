"""The lifecycle contract: what holds for every kind, whatever happened before. Each module of claims is a chapter."""

from typing import Final

from tests.engine import (
    lifecycle_contested,
    lifecycle_deleting,
    lifecycle_failing,
    lifecycle_fields,
    lifecycle_keeping,
    lifecycle_memory,
    lifecycle_previewing,
    lifecycle_uncontested,
    lifecycle_upgrading,
    lifecycle_waiting,
)
from tests.engine.claim import Claim

CHAPTERS: Final = (
    lifecycle_keeping,
    lifecycle_fields,
    lifecycle_failing,
    lifecycle_waiting,
    lifecycle_memory,
    lifecycle_previewing,
    lifecycle_contested,
    lifecycle_uncontested,
    lifecycle_deleting,
    lifecycle_upgrading,
)
CLAIMS: Final[tuple[Claim, ...]] = tuple(claim for chapter in CHAPTERS for claim in chapter.CLAIMS)
