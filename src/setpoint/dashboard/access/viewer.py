"""The user of a request, and which resources this user may see."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.api.models import ActionName
from setpoint.engine.resource import ResourceRef

# Whether a resource may be shown.
Sees: TypeAlias = Callable[[ResourceRef], bool]


class Scope(NamedTuple):
    """What rights are asked for: the resources of a kind in a namespace."""

    kind: GroupKind
    namespace: str

    @staticmethod
    def of(ref: ResourceRef) -> "Scope":
        """The scope of a resource."""
        return Scope(ref.group_kind, ref.namespace)


# The same of all resources of a scope.
SeesScope: TypeAlias = Callable[[Scope], bool]


class Viewer(Protocol):
    """The user of a request."""

    @property
    def user(self) -> str | None:
        """The name of the user; None where there are no users."""
        ...

    @property
    def is_unrestricted(self) -> bool:
        """Whether everything may be shown, without a question."""
        ...

    async def is_current(self) -> bool:
        """Whether the user is still signed in elsewhere: a token of a cluster expires, or is withdrawn."""
        ...

    @property
    def token(self) -> str | None:
        """The bearer token with which other processes are asked on behalf of the user; None where there are none."""
        ...

    async def decide(self, scopes: Collection[Scope]) -> Mapping[Scope, bool]:
        """Whether the resources of each scope may be shown."""
        ...

    async def sees_processes(self) -> bool:
        """Whether the processes may be shown: their shards, queues, rates and budgets."""
        ...

    async def act(self, ref: ResourceRef, action: ActionName) -> None:
        """Has the action done, with the rights of the user; RemoteRefused without them."""
        ...


def sees_everything(_what: object) -> bool:
    """Every resource may be shown."""
    return True


class Actions(Protocol):
    """What users may have done to resources."""

    async def act(self, ref: ResourceRef, action: ActionName) -> None:
        """Has the action done."""
        ...


@dataclass(frozen=True, slots=True)
class LocalViewer:
    """The person at this machine: what belongs to one person is shown as a whole."""

    actions: Actions | None = None
    user: str | None = None
    is_unrestricted: bool = True
    token: str | None = None

    async def is_current(self) -> bool:
        """See Viewer."""
        return True

    async def decide(self, scopes: Collection[Scope]) -> Mapping[Scope, bool]:
        """See Viewer."""
        return dict.fromkeys(scopes, True)

    async def sees_processes(self) -> bool:
        """See Viewer."""
        return True

    async def act(self, ref: ResourceRef, action: ActionName) -> None:
        """See Viewer."""
        assert self.actions is not None, "actions are off"
        await self.actions.act(ref, action)
