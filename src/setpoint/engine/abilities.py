"""What a kind may be able to do besides its verbs. The engine asks for none of it, and makes use of what is there."""

from collections.abc import AsyncGenerator, Sequence
from typing import NewType, Protocol, runtime_checkable

from setpoint.core.decide import Decision
from setpoint.core.plan import Write
from setpoint.core.wait_for import WaitFor
from setpoint.engine.kind import AnyKind, Intent, Location, Look
from setpoint.engine.resource import Resource

# What one can listen to: the changes of all objects of a kind in one cluster, say.
Topic = NewType("Topic", str)


@runtime_checkable
class Rehearsable(Protocol):
    """A kind whose service can tell what a write would come to. Then nobody else compares."""

    async def rehearse(self, intent: Intent, look: Look, decision: Decision) -> tuple[Write, ...]:
        """The writes that are left to send, each with the fields that it would change; none when nothing would.

        What would keep the service from taking them is raised. A field at or below an `unmanaged` path of the intent's
        policy is left out.
        """
        ...


@runtime_checkable
class Stoppable(Protocol):
    """A kind all of whose writes go out through our clients. Where those stop them, its steps can be tried."""

    writes_through_clients: bool


@runtime_checkable
class Awaited(Protocol):
    """A kind whose resources can wait for what becomes of their objects. `Present.whole` is what is waited on."""

    def wait_for(self, resource: Resource) -> WaitFor | None:
        """What the author waits for; None for nothing."""
        ...


@runtime_checkable
class Replaceable(Protocol):
    """A kind whose authors can say that an object may give way to another one."""

    def may_replace(self, resource: Resource) -> bool:
        """Whether the author says so."""
        ...


@runtime_checkable
class Protectable(Protocol):
    """A kind whose authors can say that an object must not be deleted."""

    def is_protected(self, resource: Resource) -> bool:
        """Whether the author says so, and the deletion of the resource would be that of its object."""
        ...


@runtime_checkable
class Lasting(Protocol):
    """A kind whose objects may be in several places at once: in two versions, say, or under two names of a service."""

    async def stands_for(self, resource: Resource, location: Location) -> bool:
        """Whether the very object is there that the status of `resource` tells of: then it has not moved."""
        ...


@runtime_checkable
class Audible(Protocol):
    """A kind whose service tells of changes."""

    def topic_of(self, location: Location) -> Topic:
        """What to listen to, to hear of changes of that object."""
        ...

    def changes(self, topic: Topic) -> AsyncGenerator[Location | None, None]:
        """Where something has changed, without an end; None when it may have been anywhere, as at the beginning.

        It goes on by itself after whatever goes wrong: nobody is told, and None comes when it is mended.
        """
        ...


@runtime_checkable
class Succeeding(Protocol):
    """A kind that brings along how it was done before its revision was raised."""

    def former(self) -> Sequence[AnyKind]:
        """The implementations of earlier revisions that can still be had."""
        ...
