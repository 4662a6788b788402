"""An upgrade of KubernetesObject: objects of one implementation in a real cluster are taken over by another."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from setpoint.clients.http import HttpRequest, HttpResponse, intercepted_by
from setpoint.clients.write_guard import is_server_dry_run
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled, StepOutcome
from setpoint.engine.step.reconcile import step
from setpoint.errors import RemoteError
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME
from setpoint.testing.upgrades import forget_cookie, take_over
from tests.cluster.objects.object_harness import ObjectHarness, config_map, deployment

# The kind that is upgraded here.
KIND: Final = (GROUP, NAME)
KindFactory: TypeAlias = Callable[[KubernetesObjectKind], AnyKind]


@dataclass(slots=True)
class WriteRecorder:
    """An interceptor that records every request that changes a cluster; server-side dry runs do not."""

    sent: list[str] = field(default_factory=list)

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See HttpInterceptor."""
        if request.method not in ("GET", "HEAD") and not is_server_dry_run(request):
            self.sent.append(f"{request.method} {request.url}")
        return None

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        """See HttpInterceptor."""
        return answer

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See HttpInterceptor."""


@dataclass(slots=True)
class UpgradeHarness:
    """One KubernetesObject, and the implementation that reconciles it now."""

    harness: ObjectHarness
    kind: AnyKind
    recorder: WriteRecorder = field(default_factory=WriteRecorder)

    @property
    def ref(self) -> ResourceRef:
        """The resource."""
        return self.harness.ref()

    @property
    def engine(self) -> EngineContext:
        """The engine with this implementation."""
        return replace(self.harness.engine, kinds={KIND: self.kind})

    @property
    def writes(self) -> list[str]:
        """The requests that changed something."""
        return self.recorder.sent

    async def step(self) -> StepOutcome:
        """One step."""
        with intercepted_by(self.recorder):
            return await step(self.ref, self.engine)

    # No object here takes more than one step once it exists.
    go_on = step


@dataclass(frozen=True, slots=True)
class Subject:
    """An object to upgrade. `spec` are further fields of its resource, `edited` is a patch of another writer."""

    manifest: Any
    # The plural, name and API version of the object.
    location: tuple[str, str, str]
    edited: dict[str, Any]
    # The field that is reverted then.
    path: str
    spec: dict[str, Any] = field(default_factory=dict)
    # The object that has to exist first.
    other: Any = None


_MAP: Final = ("configmaps", "map", "api/v1")
_WEB: Final = ("deployments", "web", "apis/apps/v1")
_BY_HAND: Final[dict[str, Any]] = {"data": {"a": "by hand"}}
_SERVICE: Final = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}
_SECRET: Final = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: Sesame-1-open}\n"
_VALUE: Final[Any] = {"$ref": {"kind": NAME, "name": "other", "path": "data.a"}}
SUBJECTS: Final[dict[str, Subject]] = {
    "a ConfigMap": Subject(config_map(a="1"), _MAP, _BY_HAND, "data.a"),
    "one that is waited for": Subject(config_map(a="1"), _MAP, _BY_HAND, "data.a", {"waitFor": {"field": "data.a"}}),
    "one with a value of another": Subject(
        config_map(a=_VALUE), _MAP, _BY_HAND, "data.a", other=config_map("other", a="1")
    ),
    "a Deployment, which a server fills in": Subject(
        deployment(replicas=2), _WEB, {"spec": {"replicas": 5}}, "spec.replicas"
    ),
    "one with a field of another manager": Subject(
        deployment(replicas=2, minReadySeconds=1),
        _WEB,
        {"spec": {"replicas": 5, "minReadySeconds": 9}},
        "spec.minReadySeconds",
        {"ignoreFields": ["spec.replicas"]},
    ),
    "a Service, which is given an address": Subject(
        _SERVICE, ("services", "web", "api/v1"), {"spec": {"selector": {"app": "mine"}}}, "spec.selector"
    ),
    "a Secret, as text": Subject(_SECRET, ("secrets", "s", "api/v1"), {"data": {"a": "bWluZQ=="}}, "data.a"),
}


def current_kind(kind: KubernetesObjectKind) -> AnyKind:
    """The present implementation."""
    return kind


@dataclass(frozen=True, slots=True)
class KindUpgrade:
    """From one implementation to another. `writes` are the fields that the new one is declared to set."""

    old: KindFactory = current_kind
    new: KindFactory = current_kind
    writes: tuple[str, ...] = ()


def declare(harness: ObjectHarness, subject: Subject) -> None:
    """Declares it without a step."""
    if subject.other is not None:
        harness.settle(subject.other, "other", waitFor={"field": "data.a"})
    harness.declare(subject.manifest, **subject.spec)


def settle(harness: ObjectHarness, subject: Subject, factory: KindFactory = current_kind) -> None:
    """Creates the object with this implementation."""
    declare(harness, subject)
    outcome = harness.run(UpgradeHarness(harness, factory(harness.kind)).go_on())
    assert isinstance(outcome, Settled), outcome


def play_upgrade(harness: ObjectHarness, subject: Subject, upgrade: KindUpgrade, *, forgets: bool = False) -> None:
    """The new implementation writes nothing but the declared fields, and the cluster shows those writes.

    `forgets`: the cookie of the old one is lost before the upgrade.
    """
    settle(harness, subject, upgrade.old)
    harness.restart()
    upgrade_harness, before = UpgradeHarness(harness, upgrade.new(harness.kind)), version(harness, subject)
    if forgets:
        harness.run(forget_cookie(upgrade_harness))
    harness.run(take_over(upgrade_harness, upgrade.writes))
    assert (version(harness, subject) != before) == bool(upgrade.writes), "the object was written to"


def version(harness: ObjectHarness, subject: Subject) -> str:
    """The resource version of the object."""
    live = harness.live(*subject.location)
    assert live is not None
    return str(live["metadata"]["resourceVersion"])
