"""An owner and its children as they are at one moment: what there should be, what there is, and both digests."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from setpoint.core.canonical import digest
from setpoint.core.children import Child, Contents, known_of
from setpoint.core.hiding import is_secret
from setpoint.core.owners import Ownership, ownership
from setpoint.core.paths import Path, get_at
from setpoint.core.reviews import Review, review
from setpoint.core.threeway import Memory
from setpoint.core.values import MISSING, Json, Missing
from setpoint.engine.owner import Generated, Owner
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.errors import ManifestInvalid, SetpointError

# On an owner: `two-way` asks for a merge without a memory, as trustee-operator does it.
MERGE: Final = "setpoint.dev/merge"
TWO_WAY, THREE_WAY = "two-way", "three-way"
# In its status: what was generated last, as digests by child, and where people's edits are in conflict with it.
LAST_GENERATED: Final = "lastGenerated"
CONFLICTS: Final = "conflicts"
_LABELS: Final = Path(("metadata", "labels"))
_OWNERS: Final = Path(("metadata", "ownerReferences"))


@dataclass(frozen=True, slots=True)
class Family:
    """One look at an owner and all of its children. `live` has those that are there, by their keys."""

    owner: Resource
    generated: Generated
    live: Mapping[str, Resource]
    # The digest of everything that the children are made of.
    intent: str

    @property
    def live_digest(self) -> str | Missing:
        """The digest of what of the children is anybody's business; MISSING when none is there."""
        seen = {child.key: _seen(child, self.live.get(child.key)) for child in self.generated.children}
        return digest(seen) if self.live else MISSING


async def look_at_family(resource: Resource, owner: Owner, store: Store) -> Family:
    """What there should be, and what there is."""
    sources = owner.sources(resource)
    found = {ref: one for ref in sources if (one := await store.get(ref)) is not None}
    generated = owner.generate(resource, found)
    live = {child.key: await store.get(ref_of(child)) for child in generated.children}
    there = {key: one for key, one in live.items() if one is not None}
    return Family(resource, generated, there, _intent(resource, owner, generated, found))


def ref_of(child: Child) -> ResourceRef:
    """Which resource a child is."""
    return Resource(child.object).ref


@dataclass(frozen=True, slots=True)
class Reviews:
    """What is to be written of all children, in order; `trouble` is why those after them are not looked at."""

    each: tuple[Review, ...] = ()
    trouble: SetpointError | None = None
    # By key: what was generated before now of those that are there.
    known: Mapping[str, Memory] = field(default_factory=dict)


def reviewed(family: Family, begun: Tree | None) -> Reviews:
    """The review of each child until one is in trouble. `begun` is what an earlier step was about to write."""
    owner, each, known = family.owner, list[Review](), dict[str, Memory]()
    is_two_way = merges_two_ways(owner.annotations)
    for child in family.generated.children:
        live = family.live.get(child.key)
        tree = None if live is None else live.document
        last = None if tree is None else _known(child, tree, owner, begun)
        if last is not None:
            known[child.key] = last
        try:
            each.append(review(child, tree, owner.document, None if is_two_way else last))
        except SetpointError as error:
            return Reviews(tuple(each), error, known)
    return Reviews(tuple(each), family.generated.trouble, known)


def _known(child: Child, live: Tree, owner: Resource, begun: Tree | None) -> Memory | None:
    is_ours = ownership(live, owner.document) is Ownership.OURS
    return known_of(child, live, owner.status.get(LAST_GENERATED, {}), begun, is_ours=is_ours)


def merges_two_ways(annotations: Mapping[str, str]) -> bool:
    """Whether the author asks for a merge without a memory; ManifestInvalid for a word that means nothing."""
    word = annotations.get(MERGE, THREE_WAY)
    if word not in (TWO_WAY, THREE_WAY):
        raise ManifestInvalid(f"{MERGE} is {word!r}: write {THREE_WAY} or {TWO_WAY}")
    return word == TWO_WAY


# --- Digests ----------------------------------------------------------------------------------------------------------


def _intent(resource: Resource, owner: Owner, generated: Generated, found: Mapping[ResourceRef, Resource]) -> str:
    annotations = resource.annotations
    return digest(
        {
            "written": resource.author_digest,
            "annotations": {key: annotations[key] for key in (MERGE, *owner.annotations) if key in annotations},
            "revision": owner.revision,
            "generated": list(_without_secrets(generated.children)),
            "trouble": None if generated.trouble is None else str(generated.trouble),
            # A Secret counts by its version, never by its values.
            "sources": {str(ref): f"{one.uid}/{one.revision}" for ref, one in found.items() if is_secret(one.document)},
        }
    )


def _without_secrets(children: Iterable[Child]) -> Iterator[Json]:
    for child in children:
        hidden = ("data", "stringData") if is_secret(child.object) else ()
        yield {name: value for name, value in child.object.items() if name not in hidden}


def _seen(child: Child, live: Resource | None) -> Json:
    if live is None:
        return None
    if is_secret(live.document):
        return [live.uid, live.revision]
    contents = None if child.contents is Contents.ONCE else child.view.read(live.document)
    return [_said(live, _LABELS), _said(live, _OWNERS), contents]


def _said(live: Resource, path: Path) -> Json:
    found = get_at(live.document, path)
    return None if isinstance(found, Missing) else found
