"""Live objects that no resource need stand for: found by lists, those that others are in first."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field, replace
from typing import Any, Final, Protocol, runtime_checkable

from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.capabilities import ImportPlace, KnownObject, ListScope, SupportsImport
from setpoint.engine.drivers.at_once import for_each, levels
from setpoint.engine.kind import Absent, Location, Present, Unchanged
from setpoint.errors import PlaceNotNamed, RemoteError, SetpointError, UserError

# More lists than these are not asked for in one import: a list of places or parents is wrong then.
_MAX_LISTS: Final = 5000
# A region and a zone, as any are named.
_SOME_PLACES: Final = ("us-central1", "us-central1-a")
_NO_LIST: Final = (
    "its objects are in no list of this project and these locations: name what they are in by --parent, "
    "or declare them by hand"
)
_NO_PLACE: Final = (
    "its objects are in no list of the project as a whole: name regions and zones by --location, or - for all of them"
)


class ListedKind(Protocol):
    """A kind that can list, and observe what a list does not show as a whole: see SupportsList."""

    def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        """See SupportsList."""
        ...

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        """See SupportsList."""
        ...

    def read_item(self, item: bytes, location: Location) -> Present[Any] | None:
        """See SupportsList."""
        ...

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Any] | Unchanged:
        """See Kind."""
        ...


@runtime_checkable
class SupportsImportBeside(Protocol):
    """A kind whose objects are in objects of many kinds: in those that are imported beside it, or that are declared.

    It is listed after all others, and only where it is named.
    """

    is_imported_beside: bool


async def listed_objects(
    kind: ListedKind, list_scope: ListScope
) -> AsyncGenerator[tuple[Location, Present[Any]], None]:
    """The objects of a list with their locations; one that an item does not show as a whole is observed."""
    async with aclosing(kind.pages(list_scope)) as pages:
        async for page in pages:
            for item in page:
                location = kind.location_of(item, list_scope)
                found = kind.read_item(item, location) or await kind.observe(location)
                if isinstance(found, Present):
                    yield found.location or location, found


@dataclass(frozen=True, slots=True)
class InventoryObject:
    """A live object: its kind, where it is, and how it was listed."""

    kind: GroupKind
    location: Location
    present: Present[Any]


@dataclass(frozen=True, slots=True)
class UnlistedKind:
    """A kind whose objects could not be listed, and why."""

    kind: GroupKind
    error: SetpointError


@dataclass(frozen=True, slots=True)
class LiveInventory:
    """The live objects of some kinds at a place, and the kinds of which not all could be listed.

    Of `global_only`, those in regions and zones were not looked for: none was named.
    """

    objects: tuple[InventoryObject, ...] = ()
    unlisted: tuple[UnlistedKind, ...] = ()
    global_only: tuple[GroupKind, ...] = ()


async def find_live_objects(
    names: Sequence[GroupKind],
    place: ImportPlace,
    kinds: Mapping[GroupKind, object],
    *,
    listed: Callable[[GroupKind, int], None] = lambda kind, count: None,
) -> LiveInventory:
    """The live objects of these kinds at a place. What others are in is listed, too, and is no part of the result.

    `listed` is told of each kind that was listed, with the number of its objects.
    """
    inventory = _Inventory(names, place, kinds, listed)
    beside = [name for name in names if isinstance(kinds[name], SupportsImportBeside)]
    others = [name for name in names if name not in beside]
    for group in (*_parents_first(others, kinds), beside):
        await inventory.read(group)
    return inventory.read_so_far()


@dataclass(slots=True)
class _Inventory:
    """What was found so far."""

    names: Sequence[GroupKind]
    place: ImportPlace
    kinds: Mapping[GroupKind, object]
    listed: Callable[[GroupKind, int], None]
    _found: list[InventoryObject] = field(default_factory=list)
    _unlisted: list[UnlistedKind] = field(default_factory=list)
    _global_only: list[GroupKind] = field(default_factory=list)

    async def read(self, group: Sequence[GroupKind]) -> None:
        """Lists kinds whose objects are not in each other's, some of them at once; the result is in their order."""
        found: dict[GroupKind, list[InventoryObject] | SetpointError] = {}

        async def read_kind(name: GroupKind) -> None:
            try:
                found[name] = await _objects_of(name, self._kind(name), self.place)
            except (UserError, RemoteError) as error:
                found[name] = error

        await for_each(group, read_kind)
        for name in group:
            self._add(name, found[name])

    def _add(self, name: GroupKind, objects: list[InventoryObject] | SetpointError) -> None:
        is_asked_for = name in self.names
        if isinstance(objects, SetpointError):
            self._unlisted += [UnlistedKind(name, objects)] if is_asked_for else []
            return
        known = [KnownObject(name, one.location) for one in objects]
        self.place = replace(self.place, known=[*self.place.known, *known])
        if _is_global_only(self._kind(name), self.place):
            self._global_only.append(name)
        if is_asked_for:
            self.listed(name, len(objects))
            self._found += objects

    def _kind(self, name: GroupKind) -> SupportsImport:
        kind = self.kinds[name]
        assert isinstance(kind, SupportsImport)
        return kind

    def read_so_far(self) -> LiveInventory:
        """All of it."""
        return LiveInventory(tuple(self._found), tuple(self._unlisted), tuple(self._global_only))


def _is_global_only(kind: SupportsImport, place: ImportPlace) -> bool:
    """Whether the kind has lists of regions or zones, and none was read because none was named."""
    if place.locations:
        return False
    some = replace(place, locations=_SOME_PLACES)
    return not set(kind.import_scopes(place)).issuperset(kind.import_scopes(some))


async def _objects_of(name: GroupKind, kind: SupportsImport, place: ImportPlace) -> list[InventoryObject]:
    scopes = kind.import_scopes(place)
    if not scopes and not kind.parent_kinds():
        raise PlaceNotNamed(_NO_PLACE) if _is_global_only(kind, place) else UserError(_NO_LIST)
    if len(scopes) > _MAX_LISTS:
        raise UserError(f"{name[1]}: {len(scopes):,} lists would have to be read: name fewer locations")
    found: dict[Location, InventoryObject] = {}
    for scope in scopes:
        async with aclosing(kind.live_objects(scope)) as objects:
            async for location, present in objects:
                found.setdefault(location, InventoryObject(name, location, present))
    return list(found.values())


def _parents_first(names: Sequence[GroupKind], kinds: Mapping[GroupKind, object]) -> Sequence[Sequence[GroupKind]]:
    """The kinds in groups, each after those whose objects its own are in, which are among them."""
    order: dict[GroupKind, Sequence[GroupKind]] = {}

    def add(name: GroupKind) -> None:
        kind = kinds.get(name)
        if name in order or not isinstance(kind, SupportsImport):
            return
        # For kinds whose objects are in objects of the same kind, too.
        order[name] = ()
        parents = kind.parent_kinds()
        for parent in parents:
            add(parent)
        del order[name]
        order[name] = parents

    for name in names:
        add(name)
    return levels(order, lambda name: order[name])
