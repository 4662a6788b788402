"""Where KubernetesObjects are upgraded: what one implementation made in a real cluster, another takes over."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from setpoint.clients.http import HttpRequest, HttpResponse, intercepted_by
from setpoint.clients.write_guard import is_server_dry_run
from setpoint.engine.context import EngineContext, Settled, StepOutcome
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reconcile import step
from setpoint.errors import RemoteError
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME
from tests.cluster.objects.object_harness import Site, config_map, deployment
from tests.engine.upgrades import forget_cookie, take_over

# The kind that is tried here.
KIND: Final = (GROUP, NAME)
Making: TypeAlias = Callable[[KubernetesObjectKind], AnyKind]


@dataclass(slots=True)
class Witness:
    """A tap that puts on record what would change a cluster; rehearsals do not."""

    sent: list[str] = field(default_factory=list)

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See Tap."""
        if request.method not in ("GET", "HEAD") and not is_server_dry_run(request):
            self.sent.append(f"{request.method} {request.url}")
        return None

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        """See Tap."""
        return answer

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See Tap."""


@dataclass(slots=True)
class UpgradeHarness:
    """One KubernetesObject of a site, and the implementation that looks after it now."""

    site: Site
    kind: AnyKind
    witness: Witness = field(default_factory=Witness)

    @property
    def ref(self) -> ResourceRef:
        """The resource."""
        return self.site.ref()

    @property
    def engine(self) -> EngineContext:
        """The world of the implementation."""
        return replace(self.site.engine, kinds={KIND: self.kind})

    @property
    def writes(self) -> list[str]:
        """What was sent that changes something."""
        return self.witness.sent

    async def step(self) -> StepOutcome:
        """One step."""
        with intercepted_by(self.witness):
            return await step(self.ref, self.engine)

    # Nothing of this kind takes more than one step, once the object is there.
    go_on = step


@dataclass(frozen=True, slots=True)
class Subject:
    """An object to try it on. `said` is what the KubernetesObject says besides, `edited` what a person changes."""

    manifest: Any
    # Where the object is: its plural, name and version.
    place: tuple[str, str, str]
    edited: dict[str, Any]
    # The field that is then to be put back.
    path: str
    said: dict[str, Any] = field(default_factory=dict)
    # What has to be there first.
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
    "one of which a field is left to others": Subject(
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


def as_it_is(kind: KubernetesObjectKind) -> AnyKind:
    """The implementation of today."""
    return kind


@dataclass(frozen=True, slots=True)
class Succession:
    """From one implementation to another. `writes` are the fields that the author of the new one says it sets."""

    old: Making = as_it_is
    new: Making = as_it_is
    writes: tuple[str, ...] = ()


def declare(site: Site, subject: Subject) -> None:
    """It is declared, and not reconciled yet."""
    if subject.other is not None:
        site.settle(subject.other, "other", waitFor={"field": "data.a"})
    site.declare(subject.manifest, **subject.said)


def settle(site: Site, subject: Subject, making: Making = as_it_is) -> None:
    """The object is there, made by this implementation."""
    declare(site, subject)
    outcome = site.run(UpgradeHarness(site, making(site.kind)).go_on())
    assert isinstance(outcome, Settled), outcome


def play_succession(site: Site, subject: Subject, succession: Succession, *, forgets: bool = False) -> None:
    """Nothing is written by the new implementation but what was declared; whatever is written shows in the cluster.

    `forgets`: the cookie of the old one is lost on the way.
    """
    settle(site, subject, succession.old)
    site.restart()
    upgrade_harness, before = UpgradeHarness(site, succession.new(site.kind)), version(site, subject)
    if forgets:
        site.run(forget_cookie(upgrade_harness))
    site.run(take_over(upgrade_harness, succession.writes))
    assert (version(site, subject) != before) == bool(succession.writes), "the object was written to"


def version(site: Site, subject: Subject) -> str:
    """Which state of the object is there, by the word of the API server."""
    live = site.live(*subject.place)
    assert live is not None
    return str(live["metadata"]["resourceVersion"])
