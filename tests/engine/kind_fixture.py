"""The fixture of a kind for the lifecycle contract: its service, manifests, fields, and what other writers do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.engine.kind import AnyKind, Reconciliation
from setpoint.engine.resource import Resource, ResourceRef

Spec = dict[str, Any]
# How many steps stand for any number of them.
FOR_EVER = 1_000
EVERY_VERB = ("get", "create", "update", "delete")


class Part(StrEnum):
    """What a kind may lack. Its fixture then says why, and the claims about it are left out."""

    COOKIE = "cookie"
    IMMUTABLE = "immutable"
    LABELS = "labels"
    MOVING_OUTPUT = "moving output"
    OPERATIONS = "operations"
    OWN_ABANDON = "own abandon"
    PROTECTION = "protection"
    PRUNING = "pruning"
    SECRET = "secret"
    SLOW_CREATE = "slow create"
    STATELESS = "stateless"


class Trouble(StrEnum):
    """How a call goes wrong."""

    UNAVAILABLE = "503"
    QUOTA = "429"
    CUT = "no answer, and nothing happened"
    LOST = "no answer, and all of it happened"
    REFUSED = "403"
    CONFLICT = "412"


OUTAGES = (Trouble.UNAVAILABLE, Trouble.QUOTA, Trouble.CUT)


@dataclass(frozen=True, slots=True)
class Specified:
    """A field that the author specifies: its path in the spec, its member of the object, and values for it."""

    path: str
    member: str
    first: Json
    then: Json
    # What another writer, or the service itself, makes of it.
    drifted: Json

    def declared_in(self, resource: Resource) -> Json | Missing:
        """The value that the author declares."""
        return get_at(resource.document, Path.parse(self.path))


@dataclass(frozen=True, slots=True)
class Unspecified:
    """A field that `spec` leaves out: what another writer makes of it, and what it is when that is undone."""

    spec: Spec
    path: str
    member: str
    theirs: Json
    pruned: Json | Missing = MISSING

    @property
    def named(self) -> Spec:
        """The spec with the value in it that it has anyway."""
        assert not isinstance(self.pruned, Missing)
        named = set_at({"spec": self.spec}, Path.parse(self.path), self.pruned)
        assert isinstance(named, dict)
        return dict(named["spec"])


@dataclass(frozen=True, slots=True)
class Fixed:
    """A change that no write can make, and the message of the error."""

    before: Spec
    after: Spec
    message: str


@dataclass(frozen=True, slots=True)
class Protection:
    """A spec that turns a protection on, one that is silent about it, and one that gives it up."""

    on: Spec
    silent: Spec
    off: Spec
    member: str
    kept: Json
    given_up: Json | Missing


@dataclass(frozen=True, slots=True)
class Referring:
    """A spec that names another resource, that resource's manifest, and what its status says when it is ready."""

    spec: Spec
    target: Mapping[str, Any]
    description: str
    outputs: Mapping[str, Any] = field(default_factory=dict)


class KindFixture(ABC):
    """One object of one kind, the service that it lives in, and all the ways to disturb both."""

    title: ClassVar[str]
    # What the kind lacks, and why.
    without: ClassVar[Mapping[Part, str]] = {}
    ref: ClassVar[ResourceRef]
    kind: AnyKind
    field: ClassVar[Specified]
    # The least that a spec can say.
    bare: ClassVar[Spec]
    # The minimal spec with another name of the object in it.
    moved: ClassVar[Spec]
    unspecified: ClassVar[Unspecified]
    referring: ClassVar[Referring]
    # What the status shows of the object.
    outputs: ClassVar[Mapping[str, Json]]
    # By the revision before: the fields that this implementation sets on what that one made.
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {}

    # --- Parts that a kind may lack ----------------------------------------------------------------------------------

    fixed: ClassVar[Fixed]
    protections: ClassVar[Sequence[Protection]]
    # A second field to be pruned, so that one of them can be listed.
    unlisted: ClassVar[Unspecified]
    # A spec that says itself that the object is abandoned.
    abandoning: ClassVar[Spec]
    # A spec that takes its password from the key `password` of the Secret `s`.
    with_secret: ClassVar[Spec]

    def holds_secret(self, text: str) -> bool:
        """Whether the service was given this secret, and none after it."""
        raise self._lacking()

    def move_output(self) -> Mapping[str, Json]:
        """Changes what only the status shows; what it has to show then."""
        raise self._lacking()

    def make_slow(self) -> None:
        """From now on writes return operations that run until `finish`."""
        raise self._lacking()

    def fail_operation(self, message: str) -> None:
        """The next operation changes nothing and ends with this error."""
        raise self._lacking()

    def _lacking(self) -> AssertionError:
        return AssertionError(f"{self.title} lacks this part, and a claim about it was played all the same")

    # --- Manifests ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def spec(self, value: Json) -> Spec:
        """The minimal spec with this value in `field`."""

    @abstractmethod
    def manifest(self, spec: Spec, **metadata: Any) -> dict[str, Any]:
        """The manifest of the resource `ref`."""

    # --- The service -------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def objects(self) -> list[str]:
        """The names of all objects of this kind, whichever writer made them."""

    @abstractmethod
    def read(self, member: str) -> Json | Missing:
        """A member of the object, as it is right now; MISSING too when there is no object."""

    @abstractmethod
    def edit(self, member: str, value: Json) -> None:
        """Changes the object as another writer."""

    @abstractmethod
    def plant(self, value: Json) -> None:
        """Makes the object as another writer would, with `value` in the member of `field`, otherwise as declared."""

    @abstractmethod
    def remove(self) -> None:
        """Takes the object away as another writer."""

    @property
    @abstractmethod
    def calls(self) -> list[str]:
        """The verb of every call that reached the service."""

    @property
    def writes(self) -> list[str]:
        """The verbs that ask for a change."""
        return [verb for verb in self.calls if verb != "get"]

    @property
    def value(self) -> Json | Missing:
        """What the object has in `field`."""
        return self.read(self.field.member)

    def drift(self) -> None:
        """Another writer changes `field`."""
        self.edit(self.field.member, self.field.drifted)

    def set_unspecified(self, other: Unspecified) -> None:
        """Another writer sets an unspecified field."""
        self.edit(other.member, other.theirs)

    # --- Trouble -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def trouble(self, trouble: Trouble, verbs: Sequence[str] = EVERY_VERB, times: int = 10**6) -> None:
        """The next calls with these verbs go wrong."""

    @abstractmethod
    def calm(self) -> None:
        """Ends all faults; the service keeps what is written."""

    @abstractmethod
    def rewrite(self, member: str, value: Json) -> None:
        """From now on the service has it its own way after every write."""

    @abstractmethod
    def grow(self) -> None:
        """The API gets a field that it did not have before."""

    @abstractmethod
    def finish(self) -> None:
        """Whatever the service was at work on is over."""

    # --- The process -------------------------------------------------------------------------------------------------

    @property
    def is_stateful(self) -> bool:
        """Whether the kind keeps a cookie."""
        return self.kind.reconciliation is Reconciliation.STATEFUL

    @abstractmethod
    def kind_over(self, wrap: Callable[[Any], Any]) -> AnyKind:
        """Another kind for the same service, with `wrap` around it and around the client that it uses."""

    @abstractmethod
    async def restart(self) -> None:
        """The process starts anew: only what the service knows is left."""
