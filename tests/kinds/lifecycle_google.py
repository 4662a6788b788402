"""What the lifecycle fixtures of Google's kinds share: a local cloud on the loopback device, with its clock held."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.engine.kind import AnyKind
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
from tests.engine.kind_fixture import EVERY_VERB, KindFixture, Trouble

PROJECT: Final = "some-project"
NAMESPACE: Final = "team"
OPERATION_SECONDS: Final = 10.0
_METHODS: Final = {"get": "GET", "create": "POST", "update": "PATCH|PUT", "delete": "DELETE"}
_VERBS: Final = {method: verb for verb, methods in _METHODS.items() for method in methods.split("|")}
_STATUSES: Final = {Trouble.UNAVAILABLE: 503, Trouble.QUOTA: 429, Trouble.REFUSED: 403, Trouble.CONFLICT: 412}


def held_cloud() -> LocalCloud:
    """A local cloud with a clock that only a fixture advances."""
    return LocalCloud(clock=CloudClock(datetime(2026, 1, 1, tzinfo=UTC)), operation_seconds=OPERATION_SECONDS)


class GoogleFixture(KindFixture):
    """One object in the local cloud. Requests go over HTTP; changes by another writer do not."""

    # The object's path in the API, and the type of its resources.
    path: ClassVar[str]
    api_kind: ClassVar[str]
    api_version: ClassVar[str]

    def __init__(self, cloud: LocalCloud) -> None:
        self.cloud = cloud
        self._connect()

    def _connect(self) -> None:
        settings = GoogleSettings(self.cloud.url, self.cloud.url, GoogleAuth.ANONYMOUS)
        self.google = GoogleClient(HttpClient(), settings)
        self.kind = self.new_kind(self.google)

    @abstractmethod
    def new_kind(self, google: GoogleClient) -> AnyKind:
        """The kind over this client."""

    @abstractmethod
    def live(self) -> dict[str, Any] | None:
        """The object as the service stores it; None when it does not exist."""

    def manifest(self, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
        annotations = {"cnrm.cloud.google.com/project-id": PROJECT, **metadata.pop("annotations", {})}
        names = {"name": self.ref.name, "namespace": self.ref.namespace}
        return {
            "apiVersion": self.api_version,
            "kind": self.ref.kind,
            "metadata": {**names, "annotations": annotations, **metadata},
            "spec": spec,
        }

    def read(self, member: str) -> Json | Missing:
        return get_at(self.live() or {}, Path.parse(member))

    def edit(self, member: str, value: Json) -> None:
        patch = set_at({}, Path.parse(member), value)
        assert isinstance(patch, dict)
        self.cloud.edit(self.path, patch)

    @property
    def calls(self) -> list[str]:
        return [_VERBS[entry.method] for entry in self.cloud.journal.entries]

    def trouble(self, trouble: Trouble, verbs: Sequence[str] = EVERY_VERB, times: int = 10**6) -> None:
        self.cloud.inject(_fault(trouble, "|".join(_METHODS[verb] for verb in verbs), times))

    def calm(self) -> None:
        self.cloud.faults.clear()

    def rewrite(self, member: str, value: Json) -> None:
        self.cloud.inject(RewriteField(self.api_kind, member, value))

    def grow(self) -> None:
        self.cloud.inject(AddFields({"addedTomorrow": {"x": 1}}, self.api_kind))

    def make_slow(self) -> None:
        """Operations are slow already: the clock is held."""

    def fail_operation(self, message: str) -> None:
        self.cloud.inject(FailOperation(message=message))

    def finish(self) -> None:
        self.cloud.advance(OPERATION_SECONDS)

    def kind_over(self, wrap: Callable[[Any], Any]) -> AnyKind:
        kind: AnyKind = wrap(self.new_kind(wrap(self.google)))
        return kind

    async def restart(self) -> None:
        await self.google.close()
        self._connect()


def _fault(trouble: Trouble, method: str, times: int) -> Fault:
    match trouble:
        case Trouble.CUT:
            return DropConnection(method=method, times=times)
        case Trouble.LOST:
            return DropConnection(method=method, times=times, moment=FaultTiming.AFTER)
        case _:
            return FailRequest(_STATUSES[trouble], method=method, times=times)
