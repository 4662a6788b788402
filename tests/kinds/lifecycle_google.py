"""What the lifecycle fixtures of Google's kinds share: a local cloud on the loopback device, with its clock held."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.faults import (
    AddFields,
    DropConnection,
    FailOperation,
    FailRequest,
    Fault,
    FaultTiming,
    RewriteField,
)
from setpoint.localcloud.server import LocalCloud
from setpoint.testing import CallFault, KindFixture, Part
from setpoint.testing.faults import EVERY_VERB, FOR_EVER

PROJECT: Final = "some-project"
NAMESPACE: Final = "team"
OPERATION_SECONDS: Final = 10.0
# What the kinds themselves tell that they lack.
TOLD: Final[Mapping[Part, str]] = {
    Part.BULK_OBSERVE: "it observes one object at a time",
    Part.CONTEXT: "it is made with a client of Google",
    Part.FORMER: "it has no former implementation",
}
_METHODS: Final = {"get": "GET", "create": "POST", "update": "PATCH|PUT", "delete": "DELETE"}
_STATUSES: Final = {CallFault.UNAVAILABLE: 503, CallFault.QUOTA: 429, CallFault.REFUSED: 403, CallFault.CONFLICT: 412}


def held_clock() -> CloudClock:
    """A clock that only a fixture advances."""
    return CloudClock(datetime(2026, 1, 1, tzinfo=UTC))


def held_cloud() -> LocalCloud:
    """A local cloud with a clock that only a fixture advances."""
    return LocalCloud(clock=held_clock(), operation_seconds=OPERATION_SECONDS)


class GoogleFixture(KindFixture):
    """One object in the local cloud. Requests go over HTTP; changes by another writer do not."""

    namespace = NAMESPACE
    many_steps = 1_000
    annotations: ClassVar[Mapping[str, str]] = {"cnrm.cloud.google.com/project-id": PROJECT}
    # The HTTP methods of each verb.
    methods: ClassVar[Mapping[str, str]] = _METHODS
    # The object's path in the API, and the type of the object there.
    path: ClassVar[str]
    api_kind: ClassVar[str]

    async def set_up(self) -> None:
        self.cloud = await self.enter(held_cloud())

    def open_client(self) -> GoogleClient:
        settings = GoogleSettings(self.cloud.url, self.cloud.url, GoogleAuth.ANONYMOUS)
        return GoogleClient(HttpClient(), settings)

    @abstractmethod
    def live(self) -> dict[str, Any] | None:
        """The object as the service stores it; None when it does not exist."""

    def read(self, member: str) -> Json | Missing:
        return get_at(self.live() or {}, Path.parse(member))

    def drift(self, member: str, value: Json) -> None:
        patch = set_at({}, Path.parse(member), value)
        assert isinstance(patch, dict)
        self.cloud.edit(self.path, patch)

    @property
    def calls(self) -> list[str]:
        verbs = {method: verb for verb, methods in self.methods.items() for method in methods.split("|")}
        return [verbs[entry.method] for entry in self.cloud.journal.entries]

    def fail_next_calls(self, fault: CallFault, verbs: Sequence[str] = EVERY_VERB, times: int = FOR_EVER) -> None:
        self.cloud.inject(injected_fault(fault, "|".join(self.methods[verb] for verb in verbs), times))

    def recover(self) -> None:
        self.cloud.faults.clear()

    def rewrite(self, member: str, value: Json) -> None:
        self.cloud.inject(RewriteField(self.api_kind, member, value))

    def add_field(self) -> None:
        self.cloud.inject(AddFields({"addedTomorrow": {"x": 1}}, self.api_kind))

    def make_slow(self) -> None:
        """Operations are slow already: the clock is held."""

    def fail_operation(self, message: str) -> None:
        self.cloud.inject(FailOperation(message=message))

    def finish(self) -> None:
        self.cloud.advance(OPERATION_SECONDS)


def injected_fault(fault: CallFault, method: str, times: int, path: str = "") -> Fault:
    """The fault of the local cloud for requests of these methods and paths."""
    match fault:
        case CallFault.CUT:
            return DropConnection(method=method, path=path, times=times)
        case CallFault.LOST:
            return DropConnection(method=method, path=path, times=times, moment=FaultTiming.AFTER)
        case _:
            return FailRequest(_STATUSES[fault], method=method, path=path, times=times)
