"""What new versions of sets mean for the resources that are there: who joins, who moves, who leaves, and who stays.

Pure: a set is the names of its resources, and a resource that is there is the little that decides about it.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.resource import ResourceRef


class PresentResource(NamedTuple):
    """A resource that is on record: its set, whether that declares it no more, and why it must not be pruned."""

    set_name: str = ""
    is_leaving: bool = False
    is_deleting: bool = False
    # Empty for one that may be pruned.
    protection: str = ""


class SetConflict(NamedTuple):
    """A resource that two sets declare."""

    ref: ResourceRef
    owner: str
    claimant: str

    def __str__(self) -> str:
        return f"{self.ref} is declared by the set {self.owner} and by the set {self.claimant}"


@dataclass(frozen=True, slots=True)
class SetPlan:
    """What becomes of each resource. Nothing may be done while there are conflicts."""

    # The set of each resource that is declared, and the one that it was in before.
    declared: Mapping[ResourceRef, tuple[str, str]]
    # Declared once it is gone: it is still being deleted.
    postponed: Collection[ResourceRef]
    # To be deleted, each with the set that it leaves; those that are being deleted already, too.
    pruned: Mapping[ResourceRef, str]
    # Each with the set that it leaves, and why it stays.
    kept: Mapping[ResourceRef, tuple[str, str]]
    conflicts: tuple[SetConflict, ...]


def plan_sets(
    versions: Mapping[str, Collection[ResourceRef]], present: Mapping[ResourceRef, PresentResource], *, adopts: bool
) -> SetPlan:
    """What declaring these versions of sets means. Sets that are not among them keep what they have.

    A resource without a set joins the one that declares it, and so does one that its set declares no more. One of any
    other set is a conflict, unless the caller `adopts`.
    """
    owners: dict[ResourceRef, str] = {}
    conflicts: list[SetConflict] = []
    for name, refs in versions.items():
        for ref in refs:
            before = present.get(ref, PresentResource())
            is_free = before.set_name in ("", name, *versions) or before.is_leaving
            if ref in owners:
                conflicts.append(SetConflict(ref, owners[ref], name))
            elif not is_free and not adopts:
                conflicts.append(SetConflict(ref, before.set_name, name))
            owners.setdefault(ref, name)
    leaving = {ref: one for ref, one in present.items() if one.set_name in versions and ref not in owners}
    stays = {ref: one for ref, one in leaving.items() if one.protection and not one.is_deleting}
    postponed = {ref for ref in owners if present.get(ref, PresentResource()).is_deleting}
    return SetPlan(
        declared={
            ref: (name, present.get(ref, PresentResource()).set_name)
            for ref, name in owners.items()
            if ref not in postponed
        },
        postponed=postponed,
        pruned={ref: one.set_name for ref, one in leaving.items() if ref not in stays},
        kept={ref: (one.set_name, one.protection) for ref, one in stays.items()},
        conflicts=tuple(conflicts),
    )
