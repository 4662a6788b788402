"""The lifecycle contract on kinds of the catalogue: which kinds are tried, and one chapter of claims on one of them."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import KindFacts, facts_of
from setpoint.core.unstructured import GroupKind
from setpoint.testing import ContractHarness, contract_harness
from setpoint.testing.claims.claim import LifecycleClaim
from setpoint.testing.contract import CHAPTERS
from tests.catalogue_kinds.fixtures import fixture_of
from tests.catalogue_kinds.left_out import claims_left_out
from tests.catalogue_kinds.row_fixture import RowFixture
from tests.catalogue_kinds.varied_fields import CannotUpdate

INTERRUPTED: Final = "interrupted"
CHAPTER_NAMES: Final = tuple(one.__name__.rpartition(".")[2] for one in CHAPTERS)


def tried_kinds() -> list[GroupKind]:
    """Every kind that has a row: none is left out."""
    return list(kinds_by_group())


def identity_of(row: KindFacts) -> str:
    """How an object is told from others: by its name, as an element of a list, or by what finds it again."""
    if row.inside is not None:
        return "element"
    if row.id.where != "service":
        return "name"
    return "label" if row.labels else "key"


def mechanisms_of(row: KindFacts) -> frozenset[Hashable]:
    """What decides how the generic kind works with a row."""
    has_method = "setLabels" in row.per_field_methods
    return frozenset(
        {
            ("update and operation", row.update_style, row.operations.get("update", "")),
            ("creation", row.id.where, row.id.form if row.id.where == "body" else "", bool(row.methods["create"].wrap)),
            ("identity", identity_of(row)),
            ("labels", "method" if has_method else "member" if row.labels else "none"),
            ("concurrency", tuple(one for one in row.concurrency if one in ("etag", "fingerprint"))),
        }
    )


def representative_kinds() -> list[GroupKind]:
    """A few kinds that have all mechanisms between them; a new mechanism brings in a kind that has it."""
    left = {name: mechanisms_of(facts_of(name)) for name in tried_kinds() if fixture_of(name).can_update}
    missing = set[Hashable]().union(*left.values())
    found: list[GroupKind] = []
    while missing:
        best = max(sorted(left), key=lambda name: len(left[name] & missing))
        found.append(best)
        missing -= left.pop(best)
    return found


def interrupted_kinds() -> list[GroupKind]:
    """Of the representative kinds, one for each sort of operation that an update starts, and for each identity."""
    found: dict[Hashable, GroupKind] = {}
    for name in representative_kinds():
        row = facts_of(name)
        found.setdefault(("operation", row.operations.get("update", "")), name)
        found.setdefault(("identity", identity_of(row)), name)
    return list(dict.fromkeys(found.values()))


# --- One chapter ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Played:
    """What became of the claims of a chapter."""

    held: list[str] = field(default_factory=list)
    failed: dict[str, BaseException] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


class LackedPart(BaseException):
    """The kind itself tells that it lacks a part which a claim needs."""


def play_chapter(fixture: type[RowFixture], chapter: str) -> Played:
    """Tries each claim of the chapter in a world of its own."""
    claims: Sequence[LifecycleClaim] = CHAPTERS[CHAPTER_NAMES.index(chapter)].CLAIMS
    played, lacking, left_out = Played(), fixture.lacking(), claims_left_out(fixture)
    for claim in claims:
        lacked = [lacking[part] for part in sorted(claim.parts) if part in lacking]
        if claim.name in left_out or lacked:
            played.left_out[claim.name] = left_out.get(claim.name) or lacked[0]
            continue
        try:
            asyncio.run(_play(claim, fixture))
        except (LackedPart, CannotUpdate) as why:
            played.left_out[claim.name] = str(why)
        except (Exception, ExceptionGroup) as error:  # noqa: BLE001 - every claim is tried, and all failures are shown
            played.failed[claim.name] = error
        else:
            played.held.append(claim.name)
    return played


async def _play(claim: LifecycleClaim, fixture: type[RowFixture]) -> None:
    @asynccontextmanager
    async def open_harness() -> AsyncIterator[ContractHarness]:
        async with contract_harness(fixture()) as harness:
            for part in sorted(claim.parts):
                if (why := harness.fixture.lacks(part)) is not None:
                    raise LackedPart(why)
            yield harness

    await claim.play(open_harness)


def failures_of(played: Played) -> dict[str, Any]:
    """The claims that failed, with what was raised."""
    return {name: f"{type(error).__name__}: {error}" for name, error in played.failed.items()}
