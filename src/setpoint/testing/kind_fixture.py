"""The fixture of a kind for the lifecycle contract: its client, its manifests, and how its world is broken."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, set_at
from setpoint.engine.capabilities import SupportsBulkObserve, SupportsFormerRevisions, SupportsList, SupportsServiceIds
from setpoint.engine.kind import AnyKind, Reconciliation
from setpoint.engine.ports import Store
from setpoint.engine.resource import ResourceRef
from setpoint.kind.base_kind import BaseKind
from setpoint.kind.kind_context import KindContext, KindServices
from setpoint.testing.awaiting import MaybeAwaitable, resolved
from setpoint.testing.counted_services import ClientWrapper, CountedCalls, CountedServices, unwrapped
from setpoint.testing.faults import (
    EVERY_VERB,
    FOR_EVER,
    CallFault,
    CallFaults,
    CountedKind,
    FaultyClient,
    VerbOf,
    setpoint_failure,
)
from setpoint.testing.kind_parts import (
    IMPLIED_PARTS,
    PART_MEMBERS,
    ImmutableChange,
    MovedObject,
    Part,
    ProtectedField,
    ReferringSpec,
    Spec,
    SpecifiedField,
    UnspecifiedField,
)

T = TypeVar("T")


class KindFixture(ABC):
    """One object of one kind, the service that it lives in, and the ways to disturb both.

    An author writes `field`, `verbs`, and the methods that are abstract here; everything else has a default, or is a
    part that `without` says the kind lacks. Each method may be `def` or `async def`. Every claim gets a new fixture.
    """

    # --- Manifests ---------------------------------------------------------------------------------------------------

    # The name and the namespace of the resource; `ref` follows from them and from the kind.
    name: ClassVar[str] = "example"
    namespace: ClassVar[str] = "default"
    # Annotations that every manifest of the kind needs.
    annotations: ClassVar[Mapping[str, str]] = {}
    field: ClassVar[SpecifiedField]
    # How many steps stand for any number of them.
    many_steps: ClassVar[int] = 200
    # The least that a spec can say.
    bare: ClassVar[Spec] = {}
    # The spec that most claims use, apart from `field`, which is added; without it, `bare`.
    minimal: ClassVar[Spec]

    # --- Parts that a kind may lack ----------------------------------------------------------------------------------

    # What the kind lacks, and why.
    without: ClassVar[Mapping[Part, str]] = {}
    # A field that the minimal spec leaves out, and a second one, so that one of them can be listed.
    unspecified: ClassVar[UnspecifiedField]
    unlisted: ClassVar[UnspecifiedField]
    moved: ClassVar[MovedObject]
    immutable: ClassVar[ImmutableChange]
    protections: ClassVar[Sequence[ProtectedField]]
    referring: ClassVar[ReferringSpec]
    # The member of the object that holds the labels of the resource.
    labels_member: ClassVar[str]
    # A spec that says itself that the object is abandoned.
    abandoning: ClassVar[Spec]
    # A spec that takes its password from the key `password` of the Secret `s`.
    with_secret: ClassVar[Spec]
    # What the status shows of the object.
    outputs: ClassVar[Mapping[str, Json]]
    # By the revision before: the fields that this implementation sets on what that one made.
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {}

    def holds_secret(self, text: str) -> MaybeAwaitable[bool]:
        """Whether the service was given this secret, and none after it."""
        raise self._lacking("holds_secret")

    def move_output(self) -> MaybeAwaitable[Mapping[str, Json]]:
        """Changes what only the status shows; what it has to show then."""
        raise self._lacking("move_output")

    def add_field(self) -> MaybeAwaitable[None]:
        """The API gets a field that it did not have before: the object has a member that the kind does not know."""
        raise self._lacking("add_field")

    def make_slow(self) -> MaybeAwaitable[None]:
        """From now on writes return operations that run until `finish`."""
        raise self._lacking("make_slow")

    def fail_operation(self, message: str) -> MaybeAwaitable[None]:
        """The next operation changes nothing and ends with this error."""
        raise self._lacking("fail_operation")

    def finish(self) -> MaybeAwaitable[None]:
        """Whatever the service was at work on is over."""
        return None

    # --- The service -------------------------------------------------------------------------------------------------

    @abstractmethod
    def objects(self) -> MaybeAwaitable[list[str]]:
        """The names of all objects of this kind, whichever writer made them."""

    @abstractmethod
    def read(self, member: str) -> MaybeAwaitable[Json | Missing]:
        """A member of the object, as it is right now; MISSING too when there is no object."""

    @abstractmethod
    def create_outside(self, value: Json) -> MaybeAwaitable[None]:
        """Makes the object as another writer would, with `value` in the member of `field`, otherwise as declared."""

    @abstractmethod
    def drift(self, member: str, value: Json) -> MaybeAwaitable[None]:
        """Changes a member of the object as another writer would."""

    @abstractmethod
    def delete_outside(self) -> MaybeAwaitable[None]:
        """Takes the object away as another writer would."""

    # --- The client and the kind -------------------------------------------------------------------------------------

    # A kind that is made with a KindContext, as those of plug-ins are. Any other: `open_client` and `new_kind`.
    kind_type: ClassVar[type[BaseKind[Any, Any]]]
    # What each method of the kind's own client does: see FaultyClient. HTTP clients of the context need nothing said.
    verbs: ClassVar[Mapping[str, VerbOf] | None] = None
    kind: AnyKind
    # What `new_kind` is given: a KindContext, or that of `open_client`, behind a FaultyClient if there are `verbs`.
    client: Any
    ref: ResourceRef
    # The store of the engine: the kind may read Secrets from it.
    store: Store

    def environment(self) -> Mapping[str, str]:
        """The environment variables of the kind's context: the address of the service, for example."""
        return {}

    def open_client(self) -> MaybeAwaitable[Any]:
        """What the kind is made with, as a new process opens it: a KindContext, or a client of the author's own."""
        self._services = KindServices(read_secret=lambda ref: self.store.get(ref))
        return self._context(unwrapped)

    def new_kind(self, client: Any) -> AnyKind:
        """The kind over this client."""
        if not hasattr(type(self), "kind_type"):
            raise AssertionError(f"{type(self).__name__} has no `kind_type`: name it, or define `new_kind`")
        return type(self).kind_type(client)

    def _context(self, wrap: ClientWrapper) -> KindContext:
        calls = CountedCalls(self.faults, self.verbs or {}, self.failure, wrap)
        return KindContext(self.environment(), services=CountedServices(self._services, calls))

    def close_client(self, client: Any) -> MaybeAwaitable[None]:
        """Closes the client: `aclose` or `close`, if it has one."""
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        return None if close is None else _closed(close)

    def failure(self, fault: CallFault, call: str) -> object:
        """What the client raises for a fault: its own exception, so that the kind's translation of it is tried, too."""
        return setpoint_failure(fault, call)

    def set_up(self) -> MaybeAwaitable[None]:
        """Makes a new world, with no object in it. What is to be closed at the end goes through `enter`."""
        return None

    async def enter(self, resource: AbstractAsyncContextManager[T]) -> T:
        """Opens a context manager that is closed with the world."""
        return await self._stack.enter_async_context(resource)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """The fixture in a new world, which is closed at the end."""
        async with AsyncExitStack() as self._stack:
            await resolved(self.set_up())
            await self.connect()
            try:
                yield self
            finally:
                await self.disconnect()

    async def connect(self) -> None:
        """Opens the client and makes the kind, as a process does that starts."""
        client = await resolved(self.open_client())
        if self.verbs is not None and not isinstance(client, KindContext):
            client = FaultyClient(client, self.verbs, self.faults, failure=self.failure)
        self.client, self.kind = client, self.new_kind(client)
        if not hasattr(self, "ref"):
            self.ref = ResourceRef(self.kind.group, self.kind.name, self.namespace, self.name)

    async def disconnect(self) -> None:
        """Closes the client."""
        await resolved(self.close_client(self.client))

    async def restart(self) -> None:
        """The process starts anew: only what the service knows is left."""
        await self.disconnect()
        await self.connect()

    def kind_over(self, wrap: Callable[[Any], Any]) -> AnyKind:
        """Another kind for the same service, with `wrap` around it and around the clients that it uses."""
        client = self._context(wrap) if isinstance(self.client, KindContext) else wrap(self.client)
        kind: AnyKind = wrap(self.new_kind(client))
        return kind

    def read_only_kind(self) -> AnyKind:
        """The kind of a process that only plans, where nothing may be written."""
        return self.new_kind(replace(self.client, is_read_only=True))

    def counted(self, kind: AnyKind) -> AnyKind:
        """The kind as the engine gets it: all writes of one verb are one call, where a FaultyClient counts."""
        counted: Any = CountedKind(kind) if self._counts_calls else kind
        checked: AnyKind = counted
        return checked

    # --- Calls and faults --------------------------------------------------------------------------------------------

    @property
    def _counts_calls(self) -> bool:
        return self.verbs is not None or isinstance(self.client, KindContext)

    @property
    def faults(self) -> CallFaults:
        """The calls through the FaultyClient, and its faults."""
        if not hasattr(self, "_faults"):
            self._faults = CallFaults()
        return self._faults

    @property
    def calls(self) -> list[str]:
        """The verb of every call that reached the service."""
        return self._counting("calls").calls

    @property
    def writes(self) -> list[str]:
        """The verbs that ask for a change."""
        return [verb for verb in self.calls if verb != "get"]

    def fail_next_calls(
        self, fault: CallFault, verbs: Sequence[str] = EVERY_VERB, times: int = FOR_EVER
    ) -> MaybeAwaitable[None]:
        """The next calls with these verbs go wrong."""
        self._counting("fail_next_calls").fail(fault, verbs, times)
        return None

    def rewrite(self, member: str, value: Json) -> MaybeAwaitable[None]:
        """From now on the service has it its own way after every write: by default another writer is quick."""
        self._counting("rewrite").override_writes(lambda: self.drift(member, value))
        return None

    def recover(self) -> MaybeAwaitable[None]:
        """Ends all faults; the service keeps what is written."""
        self._counting("recover").clear()
        return None

    def _counting(self, member: str) -> CallFaults:
        if not self._counts_calls:
            raise AssertionError(
                f"{type(self).__name__} has no `verbs`, and does not define `{member}`: say in `verbs` what each "
                "method of the client does, so that its calls are counted and can fail"
            )
        return self.faults

    # --- What follows from it ----------------------------------------------------------------------------------------

    def spec(self, value: Json) -> Spec:
        """The minimal spec with this value in `field`."""
        return _with_field(getattr(self, "minimal", self.bare), self.field.path, value)

    def spec_without(self, other: UnspecifiedField) -> Spec:
        """A spec that leaves the field out."""
        return self.spec(self.field.first) if other.spec is None else other.spec

    def spec_naming(self, other: UnspecifiedField) -> Spec:
        """The same spec with the value in it that the field has anyway."""
        if isinstance(other.pruned, Missing):
            raise AssertionError(
                f"{type(self).__name__}: {other.path} needs `pruned`: its value when it is not declared"
            )
        return _with_field(self.spec_without(other), other.path, other.pruned)

    def manifest(self, spec: Spec, **metadata: Any) -> dict[str, Any]:
        """The manifest of the resource."""
        annotations = {**self.annotations, **metadata.pop("annotations", {})}
        names = {"name": self.ref.name, "namespace": self.ref.namespace}
        return {
            "apiVersion": f"{self.kind.group}/{self.kind.version}",
            "kind": self.kind.name,
            "metadata": {**names, **({"annotations": annotations} if annotations else {}), **metadata},
            "spec": spec,
        }

    @property
    def is_stateful(self) -> bool:
        """Whether the kind keeps a cookie."""
        return self.kind.reconciliation is Reconciliation.STATEFUL

    # --- What the kind lacks -----------------------------------------------------------------------------------------

    @classmethod
    def lacking(cls) -> dict[Part, str]:
        """What the kind lacks, and why: `without`, and what follows from it."""
        found = dict(cls.without)
        for part, other in IMPLIED_PARTS:
            if part in found:
                found.setdefault(other, found[part])
        return found

    @classmethod
    def undeclared(cls) -> list[Part]:
        """The parts that the fixture neither has nor lists as lacking."""
        return [part for part in PART_MEMBERS if part not in cls.lacking() and not cls._has(part)]

    @classmethod
    def contradicted(cls) -> list[Part]:
        """The parts that the fixture has, and lists as lacking: it is wrong in one of the two."""
        return [
            part
            for part, member in PART_MEMBERS.items()
            if part in cls.without and hasattr(cls, member) and not callable(getattr(cls, member))
        ]

    @classmethod
    def _has(cls, part: Part) -> bool:
        missing = object()
        found = getattr(cls, PART_MEMBERS[part], missing)
        return found is not missing and found is not getattr(KindFixture, PART_MEMBERS[part], missing)

    def lacks(self, part: Part) -> str | None:
        """Why the kind lacks the part, as far as the kind itself tells; None for one that it has."""
        match part:
            case Part.COOKIE if not self.is_stateful:
                return "it is stateless: it compares every time"
            case Part.STATELESS if self.is_stateful:
                return "it keeps a cookie"
            case Part.CONTEXT if not isinstance(self.client, KindContext):
                return "it is made with a client, and knows nothing of plans"
            case Part.FORMER if not isinstance(self.kind, SupportsFormerRevisions):
                return "it has no former implementation"
            case Part.ADOPTION if isinstance(self.kind, SupportsServiceIds):
                return "its service makes the ids: no object is found by its name"
            case Part.LIST if not isinstance(self.kind, SupportsList):
                return "its objects cannot be listed"
            case Part.BULK_OBSERVE if not isinstance(self.kind, SupportsBulkObserve):
                return "it observes one object at a time"
            case _:
                return None

    def _lacking(self, member: str) -> AssertionError:
        return AssertionError(
            f"{type(self).__name__} does not define `{member}`, and a claim needs it: define it, or list in `without` "
            "what the kind lacks, and why"
        )


def _with_field(spec: Spec, path: str, value: Json) -> Spec:
    named = set_at({"spec": spec}, Path.parse(path), value)
    assert isinstance(named, dict)
    return dict(named["spec"])


async def _closed(close: Callable[[], Any]) -> None:
    await resolved(close())
