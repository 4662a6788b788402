"""What a new implementation of KubernetesObject does to what an old one made: nothing that was not declared."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pytest
from msgspec import structs

from setpoint.clients.kubernetes.requests import ApiWriteOptions as Options
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.core.decide import Decision
from setpoint.core.plan import PlannedWrite
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.capabilities import SupportsFormerRevisions
from setpoint.engine.kind import (
    Absent,
    AnyKind,
    Intent,
    LiveObservation,
    Location,
    Present,
    Reconciliation,
    ResolvedReferences,
    Unchanged,
)
from setpoint.engine.resource import Resource
from setpoint.engine.step.preview import PreviewFinding
from setpoint.kinds.kubernetes_object.clusters import parse_object_location
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.spec import LiveObject
from tests.cluster.objects.object_harness import Site
from tests.cluster.objects.upgrade_harness import (
    SUBJECTS,
    Making,
    Subject,
    Succession,
    UpgradeHarness,
    declare,
    play_succession,
    settle,
    version,
)
from tests.engine.upgrades import handled, read_only, revised, take_over

# By the revision before: the fields that this implementation sets on what that one made.
UPGRADES: dict[int, tuple[str, ...]] = {}
MAP = SUBJECTS["a ConfigMap"]
LABELS = "metadata.labels.kept-by"
everything = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)


# --- What holds for every object --------------------------------------------------------------------------------------


@everything
def test_a_new_revision_writes_nothing(site: Site, subject: Subject) -> None:
    play_succession(site, subject, Succession(new=revised))


@everything
@pytest.mark.parametrize("new", [copy, revised], ids=["the same", "a new revision"])
def test_an_upgrade_that_finds_no_cookie_writes_nothing(site: Site, subject: Subject, new: Any) -> None:
    play_succession(site, subject, Succession(new=new), forgets=True)


@everything
@pytest.mark.parametrize("before", list(Reconciliation))
def test_a_cookie_more_or_less_writes_nothing(site: Site, subject: Subject, before: Reconciliation) -> None:
    (after,) = set(Reconciliation) - {before}

    play_succession(site, subject, Succession(lambda kind: handled(kind, before), lambda kind: handled(kind, after)))


@everything
def test_what_drifted_is_told_beforehand_by_either(site: Site, subject: Subject) -> None:
    settle(site, subject)
    site.edit(site.path(*subject.place), subject.edited)

    same, other = (site.run(read_only(UpgradeHarness(site, kind))) for kind in (site.kind, revised(site.kind)))

    assert (same.finding, same.fields) == (PreviewFinding.WRITES, (subject.path,))
    # A person or the new mapping may have moved the field: it is left to its manager.
    assert other.finding is PreviewFinding.FAILED
    assert f"{subject.path} is held by " in other.trouble


@everything
def test_whatever_it_was_done_like_before_writes_only_what_is_declared(site: Site, subject: Subject) -> None:
    play_formers(site, subject, lambda kind: kind, UPGRADES)


def play_formers(site: Site, subject: Subject, new: Making, writes: Mapping[int, tuple[str, ...]]) -> None:
    """Every implementation that the new one brings along is succeeded by it."""
    kind: object = new(site.kind)
    for former in kind.former() if isinstance(kind, SupportsFormerRevisions) else ():
        old = partial(_instead, former)
        play_succession(site, subject, Succession(old, new, writes.get(former.revision, ())))


def _instead(other: AnyKind, _kind: KubernetesObjectKind) -> AnyKind:
    return other


# --- What was sent before ---------------------------------------------------------------------------------------------

POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
SELECTED = {"selector": {"matchLabels": {"app": "web"}}, "template": POD}
# What the first revision applied for each, word for word; it is not made of what is said today.
SENT: Final[dict[str, Any]] = {
    "a ConfigMap": ("v1", "ConfigMap", "map", {"data": {"a": "1"}}),
    "one that is waited for": ("v1", "ConfigMap", "map", {"data": {"a": "1"}}),
    "one with a value of another": ("v1", "ConfigMap", "map", {"data": {"a": "1"}}),
    "a Deployment, which a server fills in": ("apps/v1", "Deployment", "web", {"spec": {"replicas": 2, **SELECTED}}),
    "one of which a field is left to others": (
        *("apps/v1", "Deployment", "web"),
        {"spec": {"replicas": 2, "minReadySeconds": 1, **SELECTED}},
    ),
    "a Service, which is given an address": (
        *("v1", "Service", "web"),
        {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
    ),
    "a Secret, as text": ("v1", "Secret", "s", {"data": {"a": "U2VzYW1lLTEtb3Blbg=="}}),
}


def send(site: Site, title: str) -> None:
    """Applies what the first revision applied, in its name."""
    api_version, kind, name, rest = SENT[title]
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": site.namespace}, **rest}
    group, _, version = api_version.rpartition("/")
    endpoint = Endpoint(group, version, SUBJECTS[title].place[0], site.namespace, name)
    site.apply_as(f"setpoint/{site.namespace}/one", endpoint, body)


@pytest.mark.parametrize("title", SUBJECTS)
def test_what_the_first_revision_applied_is_taken_over_without_a_write(site: Site, title: str) -> None:
    send(site, title)
    declare(site, SUBJECTS[title])
    before = version(site, SUBJECTS[title])

    site.run(take_over(UpgradeHarness(site, site.kind)))

    assert version(site, SUBJECTS[title]) == before


@pytest.mark.parametrize("title", SUBJECTS)
def test_and_what_is_asked_for_since_is_named(site: Site, title: str) -> None:
    send(site, title)
    declare(site, SUBJECTS[title])

    with pytest.raises(AssertionError, match=rf"read-only: writes: \('{LABELS}',\)"):
        site.run(take_over(UpgradeHarness(site, labelling(site.kind))))


# --- It finds what was not declared -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Labelling(KubernetesObjectKind):
    """A mapping that was changed: every object has a label more."""

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """With the label."""
        declared: Any = KubernetesObjectKind.declare(self, resource, resolved)
        manifest = declared["spec"]["manifest"]
        labels = {**manifest["metadata"].get("labels", {}), "kept-by": "setpoint"}
        labelled = {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}
        return {"spec": {**declared["spec"], "manifest": labelled}}

    def former(self) -> Sequence[AnyKind]:
        """Without it."""
        return [KubernetesObjectKind(self.clusters, self.clock)]


def labelling(kind: KubernetesObjectKind) -> AnyKind:
    """The same as another revision."""
    return Labelling(kind.clusters, kind.clock, revision=2)


@everything
def test_what_was_not_declared_is_named(site: Site, subject: Subject) -> None:
    with pytest.raises(AssertionError, match=rf"read-only: writes: \('{LABELS}',\)"):
        play_succession(site, subject, Succession(new=labelling))


def test_what_was_declared_passes(site: Site) -> None:
    play_succession(site, MAP, Succession(new=labelling, writes=(LABELS,)))


def test_a_mapping_that_changed_without_its_revision_is_named(site: Site) -> None:
    with pytest.raises(AssertionError, match=rf"read-only: masked: \('{LABELS}',\)"):
        play_succession(site, MAP, Succession(new=lambda kind: Labelling(kind.clusters, kind.clock)))


def test_what_is_not_asked_for_any_more_is_named(site: Site) -> None:
    with pytest.raises(AssertionError, match=rf"read-only: writes: \('{LABELS}',\)"):
        play_succession(site, MAP, Succession(old=labelling))


def test_what_was_declared_and_does_not_come_is_named(site: Site) -> None:
    with pytest.raises(AssertionError, match="read-only: in sync"):
        play_succession(site, MAP, Succession(writes=(LABELS,)))


@dataclass(slots=True)
class Meddling(KubernetesObjectKind):
    """Writes while it looks."""

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveObject] | Unchanged:
        """After a write."""
        place = parse_object_location(location)
        reach = await self.clusters.connect(place.cluster)
        endpoint = (await reach.discovery.find(place.api_version, place.kind)).endpoint(place.namespace, place.name)
        body: dict[str, Any] = {
            "apiVersion": place.api_version,
            "kind": place.kind,
            "metadata": {"labels": {"seen": "yes"}},
        }
        await reach.client.apply(endpoint, body, Options("meddler"))
        return await KubernetesObjectKind.observe(self, location, known)


def test_a_kind_that_writes_while_it_looks_is_named_and_stopped(site: Site) -> None:
    with pytest.raises(AssertionError, match=r"it writes while it looks: \['PATCH "):
        play_succession(site, MAP, Succession(new=lambda kind: Meddling(kind.clusters, kind.clock)))

    assert "labels" not in (site.live(*MAP.place) or {})["metadata"]


@dataclass(slots=True)
class Sly(Labelling):
    """Says nothing when it is looked at, and writes all the same."""

    looks: int = 0

    async def dry_run(self, intent: Intent, look: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        """Nothing, twice."""
        self.looks += 1
        return () if self.looks <= 2 else await Labelling.dry_run(self, intent, look, decision)


def test_a_kind_that_says_nothing_and_writes_is_named(site: Site) -> None:
    with pytest.raises(AssertionError, match=r"for real: \['PATCH "):
        play_succession(site, MAP, Succession(new=lambda kind: Sly(kind.clusters, kind.clock, revision=2)))


@dataclass(slots=True)
class Restless(KubernetesObjectKind):
    """Sees another object each time."""

    looks: int = 0

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveObject] | Unchanged:
        """Never the same."""
        found = await KubernetesObjectKind.observe(self, location)
        assert isinstance(found, Present)
        self.looks += 1
        return replace(found, live=structs.replace(found.live, uid=str(self.looks)), body=str(self.looks))


def test_a_kind_that_never_comes_to_rest_is_named(site: Site) -> None:
    with pytest.raises(AssertionError, match="read-only: unsettled"):
        play_succession(site, MAP, Succession(new=lambda kind: Restless(kind.clusters, kind.clock)))


def test_a_kind_that_brings_its_former_self_along_is_tried_on_what_that_made(site: Site) -> None:
    play_formers(site, MAP, labelling, {1: (LABELS,)})


def test_and_fails_when_it_declares_nothing(site: Site) -> None:
    with pytest.raises(AssertionError, match=LABELS):
        play_formers(site, MAP, labelling, {})
