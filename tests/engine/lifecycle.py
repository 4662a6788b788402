"""The lifecycle contract: what holds for every kind, whatever happened before. Each module of claims is a chapter."""

from typing import Final

from tests.engine import (
    lifecycle_deleting,
    lifecycle_failing,
    lifecycle_fields,
    lifecycle_oscillation,
    lifecycle_oscillation_end,
    lifecycle_previews,
    lifecycle_reconciling,
    lifecycle_stored_state,
    lifecycle_upgrading,
    lifecycle_waiting,
)
from tests.engine.claim import Claim

CHAPTERS: Final = (
    lifecycle_reconciling,
    lifecycle_fields,
    lifecycle_failing,
    lifecycle_waiting,
    lifecycle_stored_state,
    lifecycle_previews,
    lifecycle_oscillation,
    lifecycle_oscillation_end,
    lifecycle_deleting,
    lifecycle_upgrading,
)
CLAIMS: Final[tuple[Claim, ...]] = tuple(claim for chapter in CHAPTERS for claim in chapter.CLAIMS)
