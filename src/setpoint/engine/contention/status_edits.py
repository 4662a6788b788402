"""Edits of a status by other writers, found by its hash: each step leaves the hash of the status that it read or wrote.

A process keeps them in memory. The status of a resource without a step here counts as unedited: its first step, soon
after the start of the process, reports what it finds.
"""

from typing import NamedTuple

from setpoint.engine.resource import Resource, ResourceRef, Revision


class LeftStatus(NamedTuple):
    """The status that the last step of a resource left: its revision and its hash, valid in this process only."""

    revision: Revision
    status_hash: int


class StatusEdits:
    """The status that the last step of each resource left, and whether another writer has changed it since."""

    def __init__(self) -> None:
        self._left: dict[ResourceRef, LeftStatus] = {}

    def leave(self, resource: Resource) -> None:
        """A step of the resource read or wrote this status."""
        self._left[resource.ref] = LeftStatus(resource.revision, resource.status_hash)

    def is_edited(self, ref: ResourceRef, now: LeftStatus) -> bool:
        """Whether another writer made this status of the last one; what the step itself wrote before is no edit."""
        left = self._left.get(ref)
        # Of one resource, revisions are numbers that grow.
        return left is not None and left.status_hash != now.status_hash and int(now.revision) > int(left.revision)

    def knows(self, ref: ResourceRef) -> bool:
        """Whether a step of the resource was taken here."""
        return ref in self._left

    def forget(self, ref: ResourceRef) -> None:
        """The resource is gone, or not reconciled here any more."""
        self._left.pop(ref, None)
