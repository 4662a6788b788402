"""Optional capabilities of a kind, as protocols: dry run, wait, replace, watch, list."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, NewType, Protocol, runtime_checkable

from setpoint.core.decide import Decision
from setpoint.core.plan import PlannedWrite
from setpoint.core.wait.wait_for import WaitFor
from setpoint.engine.kind import AnyKind, Intent, LiveObservation, Location, Present
from setpoint.engine.resource import Resource

# What one can listen to: the changes of all objects of a kind in one cluster, say.
WatchTopic = NewType("WatchTopic", str)


@runtime_checkable
class SupportsDryRun(Protocol):
    """A kind whose service can tell what a write would come to. Then nobody else compares."""

    async def dry_run(self, intent: Intent, look: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        """The writes that are left to send, each with the fields that it would change; none when nothing would.

        What would keep the service from taking them is raised. A field at or below an `unmanaged` path of the intent's
        policy is left out.
        """
        ...


@runtime_checkable
class SupportsWriteGuard(Protocol):
    """A kind all of whose writes go out through our clients. Where those stop them, its steps can be tried."""

    writes_through_clients: bool


@runtime_checkable
class SupportsWait(Protocol):
    """A kind whose resources can wait for what becomes of their objects. `Present.whole` is what is waited on."""

    def wait_for(self, resource: Resource) -> WaitFor | None:
        """What the author waits for; None for nothing."""
        ...


@runtime_checkable
class SupportsReplace(Protocol):
    """A kind whose authors can say that an object may give way to another one."""

    def may_replace(self, resource: Resource) -> bool:
        """Whether the author says so."""
        ...


@runtime_checkable
class SupportsDeletionProtection(Protocol):
    """A kind whose authors can say that an object must not be deleted."""

    def is_protected(self, resource: Resource) -> bool:
        """Whether the author says so, and the deletion of the resource would be that of its object."""
        ...


@runtime_checkable
class SupportsAliases(Protocol):
    """A kind whose objects may be in several places at once: in two versions, say, or under two names of a service."""

    async def is_same_object(self, resource: Resource, location: Location) -> bool:
        """Whether the very object is there that the status of `resource` tells of: then it has not moved."""
        ...


@runtime_checkable
class SupportsWatch(Protocol):
    """A kind whose service tells of changes."""

    def watch_topic(self, location: Location) -> WatchTopic:
        """What to listen to, to hear of changes of that object."""
        ...

    def changes(self, topic: WatchTopic) -> AsyncGenerator[Location | None, None]:
        """Where something has changed, without an end; None when it may have been anywhere, as at the beginning.

        It goes on by itself after whatever goes wrong: nobody is told, and None comes when it is mended.
        """
        ...


@runtime_checkable
class SupportsFormerRevisions(Protocol):
    """A kind that brings along how it was done before its revision was raised."""

    def former(self) -> Sequence[AnyKind]:
        """The implementations of earlier revisions that can still be had."""
        ...


ListScope = NewType("ListScope", str)


@runtime_checkable
class SupportsList(Protocol):
    """What the author of a kind writes besides, when its objects can be listed with all that a look shows.

    A listing only ever says that an object has not moved. What it leaves out, shows otherwise or shows too late costs a
    look, and nothing else.
    """

    def list_scope_of(self, location: Location) -> ListScope | None:
        """The shelf that the object is on; None for a place that is no object's of this kind."""
        ...

    def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        """Everything on the shelf, a page at a time; each item as the bytes that came. Any failure raises."""
        ...

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        """Where the object is that an item shows."""
        ...

    def read_item(self, item: bytes, location: Location) -> Present[Any] | None:
        """The object as a look would have found it; None when the item may not show all of it."""
        ...
