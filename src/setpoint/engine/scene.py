"""What one step works with, and what it may leave behind."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias

from setpoint.core.canonical import same
from setpoint.core.plan import Plan
from setpoint.engine.kind import AnyKind
from setpoint.engine.ports import Clock, Metrics, Note, Store
from setpoint.engine.remembered import COOKIE_ANNOTATION, Remembered
from setpoint.engine.report import Ready, with_ready
from setpoint.engine.resource import Resource, Tree
from setpoint.engine.rest import Rests
from setpoint.errors import ManifestInvalid, SetpointError

FINALIZER: Final = "cnrm.cloud.google.com/finalizer"
DELETION_POLICY: Final = "cnrm.cloud.google.com/deletion-policy"
MANAGEMENT: Final = "setpoint.dev/management"


class CookieLocation(StrEnum):
    """Where the cookie is written; both places are read."""

    STATUS = "status"
    ANNOTATION = "annotation"


class Management(StrEnum):
    """How far a step may go."""

    FULL = "full"
    OBSERVE = "observe"
    PAUSED = "paused"


class Unmeasured:
    """Metrics that nobody reads."""

    def stepped(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        """See Metrics."""


@dataclass(frozen=True, slots=True)
class World:
    """Where resources are kept, what time it is, and every kind by API group and name."""

    store: Store
    clock: Clock
    kinds: Mapping[tuple[str, str], AnyKind]
    cookies: CookieLocation = CookieLocation.STATUS
    metrics: Metrics = field(default_factory=Unmeasured)
    # What a long-running process remembers of resources at rest; a single command has nothing to remember.
    rests: Rests | None = None

    def kind_of(self, resource: Resource) -> AnyKind:
        """The kind that handles `resource`."""
        found = self.kinds.get((resource.ref.group, resource.ref.kind))
        if found is None:
            known = ", ".join(sorted(name for _, name in self.kinds))
            raise ManifestInvalid(f"{resource.ref}: no kind {resource.ref.kind} is known here; there is {known}")
        return found


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing is left to do. `plan` is what the step found and did."""

    plan: Plan
    ready: Ready


@dataclass(frozen=True, slots=True)
class Stopped:
    """The step ended early; the class of `error` says when to try again."""

    error: SetpointError


@dataclass(frozen=True, slots=True)
class Gone:
    """The resource is no more, or not ours to look after any more."""


Outcome: TypeAlias = Settled | Stopped | Gone


@dataclass(frozen=True, slots=True)
class Scene:
    """A resource in the middle of a step: as it was last read or written, and what is to be remembered of it."""

    world: World
    resource: Resource
    kind: AnyKind
    remembered: Remembered
    trigger: str = "a look"

    @property
    def management(self) -> Management:
        """How far this step may go; ManifestInvalid for a word that means nothing."""
        word = self.resource.annotations.get(MANAGEMENT, Management.FULL.value)
        try:
            return Management(word)
        except ValueError:
            allowed = ", ".join(mode.value for mode in Management)
            raise ManifestInvalid(f"{MANAGEMENT} is {word!r}: write one of {allowed}") from None

    @property
    def is_claimed(self) -> bool:
        """Whether the resource is held until its object is dealt with, and its object is on record."""
        return FINALIZER in self.resource.finalizers and self.remembered.location is not None

    async def tell(self, ready: Ready, outputs: Tree | None = None) -> "Scene":
        """The scene after the status says how it stands; nothing is written when it says so already."""
        base = self.resource.status if outputs is None else {**_own_members(self.resource.status), **outputs}
        in_status = self.world.cookies is CookieLocation.STATUS
        remembered = self.remembered.into(base, with_cookie=in_status)
        status = with_ready(remembered, self.resource, ready, self.world.clock.now())
        scene = self if in_status else await self._annotate_cookie()
        if same(status, scene.resource.status):
            return scene
        told = replace(scene, resource=await self.world.store.update_status(scene.resource, status))
        if not same(status["conditions"], scene.resource.status.get("conditions", [])):
            await told.note(ready.reason, ready.message, is_warning=ready.is_failure)
        return told

    async def note(self, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Puts on record what people should know; `setpoint events` shows it."""
        severity = "Warning" if is_warning else "Normal"
        ref, uid, now = self.resource.ref, self.resource.uid, self.world.clock.now()
        await self.world.store.note(Note(ref, uid, severity, reason, message, now))

    async def _annotate_cookie(self) -> "Scene":
        cookie = None if self.remembered.cookie is None else str(self.remembered.cookie)
        if self.resource.annotations.get(COOKIE_ANNOTATION) == cookie:
            return self
        resource = await self.world.store.annotate(self.resource, {COOKIE_ANNOTATION: cookie})
        return replace(self, resource=resource)


def _own_members(status: Tree) -> Tree:
    """The members that a kind's outputs do not replace."""
    return {name: status[name] for name in ("conditions",) if name in status}
