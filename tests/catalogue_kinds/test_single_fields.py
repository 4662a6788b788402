"""One field at a time, of every kind: a change of it changes nothing else; taken out, it is unset or kept for a reason.

The object has every field that can be declared. The service has a member that no row knows.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.parts import member_path, settable_paths
from setpoint.catalogue.rows import FieldFacts, KindFacts
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path
from setpoint.kinds.gcp.generic.equivalence import is_zero
from setpoint.kinds.gcp.generic.members import member_at
from setpoint.kinds.gcp.generic.spec_types import has_default
from tests.catalogue_kinds.full_specs import changed_specs
from tests.catalogue_kinds.full_worlds import FullWorld, declared_fields, full_world, tried_kinds

_KINDS = tried_kinds(kinds_by_group())
# What a service counts and notes with every change.
_NOTED = ("etag", "updateTime", "fingerprint", "labelFingerprint", "lastModifiedAt", "lastModifiedTime", "generation")


def differing(before: Any, after: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths at which two objects differ."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after} - {*_NOTED}):
            yield from differing(before.get(name, MISSING), after.get(name, MISSING), (*at, name))
    elif before != after:
        yield at


@pytest.mark.parametrize("name", _KINDS, ids=lambda name: name[1])
def test_a_change_of_one_field_changes_nothing_else(name: GroupKind) -> None:
    async def changed_besides() -> list[str]:
        async with full_world(name) as world:
            world.fixture.add_field()
            return [one async for one in _changed_besides(world)]

    assert asyncio.run(changed_besides()) == []


async def _changed_besides(world: FullWorld) -> Any:
    row, spec = world.row, world.spec
    for field, changed in changed_specs(row, world.spec):
        before = world.live()
        if field not in declared_fields(row, spec):
            continue
        if await world.declare({**spec, field: changed[field]}) is None:
            await world.declare(spec)
            continue
        spec = {**spec, field: changed[field]}
        own = member_path(field, row.fields[field])
        for path in differing(before, world.live()):
            if path[: len(own)] != own[: len(path)]:
                yield f"{field} changes {'.'.join(path)}"
    assert await world.rests()


@pytest.mark.parametrize("name", _KINDS, ids=lambda name: name[1])
def test_a_field_that_is_taken_out_is_unset_or_kept_for_a_reason(name: GroupKind) -> None:
    async def left() -> list[str]:
        async with full_world(name) as world:
            return [one async for one in _left(world)]

    assert asyncio.run(left()) == []


async def _left(world: FullWorld) -> Any:
    assert await world.rests()
    row, spec = world.row, dict(world.spec)
    for field in declared_fields(row, spec):
        facts = row.fields[field]
        if facts.required:
            continue
        value = spec.pop(field)
        plan = await world.declare(spec)
        if plan is None:
            spec[field] = value
            continue
        is_kept = any(change.path.steps[:2] == ("spec", field) for change in (*plan.kept, *plan.retained))
        if not (is_kept or _is_unset(world.live(), field, row) or _is_told_otherwise(field, facts, row)):
            yield f"{field} stays {member_at(world.live(), member_path(field, facts))}"
        if not await world.rests():
            yield f"{field} is not at rest"


def _is_unset(live: dict[str, Any], field: str, row: KindFacts) -> bool:
    facts = row.fields[field]
    found = member_at(live, member_path(field, facts))
    return (
        found is MISSING
        or is_zero(found, inside=True)
        or found == [{}]
        or (has_default(facts) and str(found) == str(facts.default))
    )


def _is_told_otherwise(field: str, facts: FieldFacts, row: KindFacts) -> bool:
    """Whether another field, the author of the labels or nothing at all says what the member is."""
    member = member_path(field, facts)
    shared = [one for one, its in row.fields.items() if one != field and member_path(one, its)[:1] == member[:1]]
    settable, path = settable_paths(row), Path(("spec", field))
    is_fixed = settable is not None and not any(one.steps[:2] == path.steps for one in settable)
    is_silent = facts.input_only or facts.secret or facts.toggle or facts.later or facts.grows or facts.immutable
    return bool(shared or is_silent or is_fixed or member == (row.labels,))
