"""What a new implementation of an owner does to what an old one made: nothing that was not declared."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from setpoint.core.merge.children import Child
from setpoint.core.values.paths import get_at, set_at
from setpoint.engine.context import EngineContext
from setpoint.engine.owner import GeneratedChildren, Owner
from setpoint.engine.owners.children import LAST_GENERATED
from setpoint.engine.ports import ChildWrite, Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import StepOutcome
from setpoint.engine.step.preview import PreviewFinding
from setpoint.testing import ChildField
from setpoint.testing.owners.owner_harness import OwnerHarness
from setpoint.testing.upgrades import forget_cookie, read_only, take_over

Claim: TypeAlias = Callable[[OwnerHarness], Awaitable[None]]
_WRITING: Final = ("apply", "create", "replace", "update_status", "set_finalizers", "annotate", "update", "delete")


class Witnessed:
    """A store that records every write: its verb and its resource."""

    def __init__(self, behind: Store, writes: list[tuple[str, ResourceRef]]) -> None:
        self._behind, self._writes = behind, writes

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._behind, name)
        if name not in _WRITING:
            return verb

        async def write(target: Any, *rest: Any, **parts: Any) -> Any:
            ref = target if isinstance(target, ResourceRef) else getattr(target, "ref", None) or Resource(target).ref
            self._writes.append((name, ref))
            return await verb(target, *rest, **parts)

        return write

    async def write_children(self, writes: Sequence[ChildWrite]) -> tuple[Resource, ...]:
        for one in writes:
            self._writes.append(("create" if one.seen is None else "replace", Resource(one.document).ref))
        return await self._behind.write_children(writes)


@dataclass(slots=True)
class Ground:
    """An owner, and the implementation that reconciles it now."""

    harness: OwnerHarness
    written: list[tuple[str, ResourceRef]] = field(default_factory=list)

    @property
    def ref(self) -> ResourceRef:
        """The owner."""
        return self.harness.ref

    @property
    def engine(self) -> EngineContext:
        """The world of the implementation."""
        return self._witnessed().engine

    @property
    def writes(self) -> list[str]:
        """What was written to anything but the owner itself: its children, that is."""
        return [f"{verb} {ref}" for verb, ref in self.written if ref != self.ref]

    async def step(self) -> StepOutcome:
        """One step."""
        return await self._witnessed().step()

    # No child takes more than one.
    go_on = step

    def _witnessed(self) -> OwnerHarness:
        store: Any = Witnessed(self.harness.store, self.written)
        return replace(self.harness, store=store)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """From one implementation to another. `writes` are the fields that the author of the new one says it sets."""

    old: Owner
    new: Owner
    writes: tuple[str, ...] = ()


async def play_upgrade(harness: OwnerHarness, upgrade: Upgrade, *meanwhile: Claim) -> None:
    """Nothing is written by the new implementation but what was declared, and then it is at rest.

    `meanwhile` is what happens after the last step of the old one.
    """
    manage_with(harness, upgrade.old)
    await harness.settle()
    for happens in meanwhile:
        await happens(harness)
    await harness.restart()
    manage_with(harness, upgrade.new)
    before = await _versions(harness)
    await take_over(Ground(harness), upgrade.writes)
    after = await _versions(harness)
    assert bool(upgrade.writes) == (after != before), "children were written to"


def manage_with(harness: OwnerHarness, owner: Owner) -> None:
    """From here on this is the implementation."""
    harness.fixture = replace(harness.fixture, owner=owner)


async def made_now(harness: OwnerHarness) -> tuple[Child, ...]:
    """What the owner generates."""
    resource, owner = await harness.resource(), harness.fixture.owner
    found = {ref: one for ref in owner.sources(resource) if (one := await harness.store.get(ref)) is not None}
    return owner.generate(resource, found).children


async def _versions(harness: OwnerHarness) -> dict[str, str]:
    """Which states the children are in, by the word of the store."""
    live = {child.key: await harness.store.get(harness.at(child.key)) for child in await made_now(harness)}
    return {key: "" if one is None else str(one.revision) for key, one in live.items()}


# --- Other implementations --------------------------------------------------------------------------------------------


def revised(owner: Owner) -> Owner:
    """The owner with its revision raised."""
    other = copy(owner)
    other.revision += 1
    return other


class _Otherwise:
    """An owner that generates its children differently."""

    def __init__(self, owner: Owner, change: Callable[[Child], Child | None], revision: int) -> None:
        self._owner, self._change, self.revision = owner, change, revision

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, name)

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> GeneratedChildren:
        """See Owner."""
        made = self._owner.generate(resource, found)
        children = tuple(changed for child in made.children if (changed := self._change(child)) is not None)
        return replace(made, children=children)


def otherwise(owner: Owner, change: Callable[[Child], Child | None], revision: int | None = None) -> Owner:
    """The owner with its children changed, and without those that come to None; of that revision, or the same."""
    made: Any = _Otherwise(owner, change, owner.revision if revision is None else revision)
    other: Owner = made
    return other


def with_another(place: ChildField) -> Callable[[Child], Child]:
    """A change of one field of one child."""

    def change(child: Child) -> Child:
        if child.key != place.key:
            return child
        assert get_at(child.object, place.path) != place.value, f"{place} is generated anyway"
        made: Any = set_at(child.object, place.path, place.value)
        return replace(child, object=made)

    return change


def leaving_out(key: str) -> Callable[[Child], Child | None]:
    """A change by which there is no such child."""
    return lambda child: None if child.key == key else child


def field_of(place: ChildField) -> str:
    """How a plan names it."""
    return f"{place.key}.{place.path}"


# --- Claims -----------------------------------------------------------------------------------------------------------


async def a_new_revision_writes_nothing(harness: OwnerHarness) -> None:
    owner = harness.fixture.owner

    await play_upgrade(harness, Upgrade(owner, revised(owner)))


async def an_upgrade_that_finds_no_cookie_writes_nothing(harness: OwnerHarness) -> None:
    owner = harness.fixture.owner

    await play_upgrade(harness, Upgrade(owner, owner), _forget)
    await play_upgrade(harness, Upgrade(owner, revised(owner)), _forget)


async def an_upgrade_that_finds_no_memory_of_what_was_generated_writes_nothing(harness: OwnerHarness) -> None:
    owner = harness.fixture.owner

    await play_upgrade(harness, Upgrade(owner, revised(owner)), _forget, _forget_generated)


async def what_another_writer_edited_stays_and_nothing_is_written(harness: OwnerHarness) -> None:
    owner, theirs = harness.fixture.owner, harness.fixture.editable

    await play_upgrade(harness, Upgrade(owner, revised(owner)), OwnerHarness.write)

    assert get_at((await harness.child(theirs.key)).document, theirs.path) == theirs.value


async def drift_is_corrected_by_either_revision_and_previewed(harness: OwnerHarness) -> None:
    owner, managed = harness.fixture.owner, harness.fixture.managed
    await harness.settle()
    await harness.drift()

    before = await read_only(Ground(harness))
    manage_with(harness, revised(owner))
    after = await read_only(Ground(harness))

    assert (before.finding, after.finding) == (PreviewFinding.WRITES, PreviewFinding.WRITES)
    assert before.fields == after.fields == (field_of(managed),)


async def what_is_made_otherwise_now_is_written_when_that_is_declared(harness: OwnerHarness) -> None:
    owner, managed = harness.fixture.owner, harness.fixture.managed

    await play_upgrade(harness, Upgrade(otherwise(owner, with_another(managed)), revised(owner), (field_of(managed),)))


CLAIMS: Final[tuple[Claim, ...]] = (
    a_new_revision_writes_nothing,
    an_upgrade_that_finds_no_cookie_writes_nothing,
    an_upgrade_that_finds_no_memory_of_what_was_generated_writes_nothing,
    what_another_writer_edited_stays_and_nothing_is_written,
    drift_is_corrected_by_either_revision_and_previewed,
    what_is_made_otherwise_now_is_written_when_that_is_declared,
)


async def _forget(harness: OwnerHarness) -> None:
    await forget_cookie(Ground(harness))


async def _forget_generated(harness: OwnerHarness) -> None:
    """As left by a controller without a record of it, such as trustee-operator."""
    resource = await harness.resource()
    status = {name: value for name, value in resource.status.items() if name != LAST_GENERATED}
    await harness.store.update_status(resource, status)
