"""A new implementation of KubernetesObject writes only declared fields to objects of an old one."""

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
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.location import parse_object_location
from setpoint.kinds.kubernetes_object.spec import LiveObject
from setpoint.testing.upgrades import handled, read_only, revised, take_over
from tests.cluster.objects.object_harness import ObjectHarness
from tests.cluster.objects.upgrade_harness import (
    SUBJECTS,
    KindFactory,
    KindUpgrade,
    Subject,
    UpgradeHarness,
    declare,
    play_upgrade,
    settle,
    version,
)

# By former revision: the fields that this implementation sets on objects of that one.
UPGRADES: dict[int, tuple[str, ...]] = {}
MAP = SUBJECTS["a ConfigMap"]
LABELS = "metadata.labels.kept-by"
everything = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)


# --- What holds for every object --------------------------------------------------------------------------------------


@everything
def test_a_new_revision_writes_nothing(harness: ObjectHarness, subject: Subject) -> None:
    play_upgrade(harness, subject, KindUpgrade(new=revised))


@everything
@pytest.mark.parametrize("new", [copy, revised], ids=["the same", "a new revision"])
def test_an_upgrade_that_finds_no_cookie_writes_nothing(harness: ObjectHarness, subject: Subject, new: Any) -> None:
    play_upgrade(harness, subject, KindUpgrade(new=new), forgets=True)


@everything
@pytest.mark.parametrize("before", list(Reconciliation))
def test_a_change_between_reconciling_with_and_without_cookie_writes_nothing(
    harness: ObjectHarness, subject: Subject, before: Reconciliation
) -> None:
    (after,) = set(Reconciliation) - {before}

    play_upgrade(harness, subject, KindUpgrade(lambda kind: handled(kind, before), lambda kind: handled(kind, after)))


@everything
def test_drift_is_previewed_by_both_implementations(harness: ObjectHarness, subject: Subject) -> None:
    settle(harness, subject)
    harness.edit(harness.path(*subject.location), subject.edited)

    same, other = (
        harness.run(read_only(UpgradeHarness(harness, kind))) for kind in (harness.kind, revised(harness.kind))
    )

    assert (same.finding, same.fields) == (PreviewFinding.WRITES, (subject.path,))
    # Either another writer or the new mapping may have changed the field: it is left to its manager.
    assert other.finding is PreviewFinding.FAILED
    assert f"{subject.path} is held by " in other.trouble


@everything
def test_an_upgrade_from_any_former_revision_writes_only_declared_fields(
    harness: ObjectHarness, subject: Subject
) -> None:
    play_former_revisions(harness, subject, lambda kind: kind, UPGRADES)


def play_former_revisions(
    harness: ObjectHarness, subject: Subject, new: KindFactory, writes: Mapping[int, tuple[str, ...]]
) -> None:
    """Upgrades from every former revision that the new implementation declares."""
    kind: object = new(harness.kind)
    for former in kind.former() if isinstance(kind, SupportsFormerRevisions) else ():
        old = partial(_ignoring_current, former)
        play_upgrade(harness, subject, KindUpgrade(old, new, writes.get(former.revision, ())))


def _ignoring_current(other: AnyKind, _kind: KubernetesObjectKind) -> AnyKind:
    return other


# --- The first revision -----------------------------------------------------------------------------------------------

POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
SELECTED = {"selector": {"matchLabels": {"app": "web"}}, "template": POD}
# The bodies that the first revision applied, as literals: they do not depend on the present code.
SENT: Final[dict[str, Any]] = {
    "a ConfigMap": ("v1", "ConfigMap", "map", {"data": {"a": "1"}}),
    "one that is waited for": ("v1", "ConfigMap", "map", {"data": {"a": "1"}}),
    "one with a value of another": ("v1", "ConfigMap", "map", {"data": {"a": "1"}}),
    "a Deployment, which a server fills in": ("apps/v1", "Deployment", "web", {"spec": {"replicas": 2, **SELECTED}}),
    "one with a field of another manager": (
        *("apps/v1", "Deployment", "web"),
        {"spec": {"replicas": 2, "minReadySeconds": 1, **SELECTED}},
    ),
    "a Service, which is given an address": (
        *("v1", "Service", "web"),
        {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
    ),
    "a Secret, as text": ("v1", "Secret", "s", {"data": {"a": "U2VzYW1lLTEtb3Blbg=="}}),
}


def send(harness: ObjectHarness, title: str) -> None:
    """Applies the body of the first revision with its field manager."""
    api_version, kind, name, rest = SENT[title]
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": harness.namespace}, **rest}
    group, _, version = api_version.rpartition("/")
    endpoint = Endpoint(group, version, SUBJECTS[title].location[0], harness.namespace, name)
    harness.apply_as(f"setpoint/{harness.namespace}/one", endpoint, body)


@pytest.mark.parametrize("title", SUBJECTS)
def test_objects_of_the_first_revision_are_taken_over_without_a_write(harness: ObjectHarness, title: str) -> None:
    send(harness, title)
    declare(harness, SUBJECTS[title])
    before = version(harness, SUBJECTS[title])

    harness.run(take_over(UpgradeHarness(harness, harness.kind)))

    assert version(harness, SUBJECTS[title]) == before


@pytest.mark.parametrize("title", SUBJECTS)
def test_a_field_that_the_first_revision_did_not_set_is_named(harness: ObjectHarness, title: str) -> None:
    send(harness, title)
    declare(harness, SUBJECTS[title])

    with pytest.raises(AssertionError, match=rf"read-only: writes: \('{LABELS}',\)"):
        harness.run(take_over(UpgradeHarness(harness, adding_label(harness.kind))))


# --- Undeclared writes are found --------------------------------------------------------------------------------------


@dataclass(slots=True)
class AddsLabel(KubernetesObjectKind):
    """A changed mapping: every object gets another label."""

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The manifest with the label."""
        declared: Any = KubernetesObjectKind.declare(self, resource, resolved)
        manifest = declared["spec"]["manifest"]
        labels = {**manifest["metadata"].get("labels", {}), "kept-by": "setpoint"}
        labelled = {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}
        return {"spec": {**declared["spec"], "manifest": labelled}}

    def former(self) -> Sequence[AnyKind]:
        """The revision without the label."""
        return [KubernetesObjectKind(self.clusters, self.clock)]


def adding_label(kind: KubernetesObjectKind) -> AnyKind:
    """The changed mapping as a new revision."""
    return AddsLabel(kind.clusters, kind.clock, revision=2)


@everything
def test_an_undeclared_write_is_named(harness: ObjectHarness, subject: Subject) -> None:
    with pytest.raises(AssertionError, match=rf"read-only: writes: \('{LABELS}',\)"):
        play_upgrade(harness, subject, KindUpgrade(new=adding_label))


def test_a_declared_write_passes(harness: ObjectHarness) -> None:
    play_upgrade(harness, MAP, KindUpgrade(new=adding_label, writes=(LABELS,)))


def test_a_mapping_that_changed_without_its_revision_is_named(harness: ObjectHarness) -> None:
    with pytest.raises(AssertionError, match=rf"read-only: masked: \('{LABELS}',\)"):
        play_upgrade(harness, MAP, KindUpgrade(new=lambda kind: AddsLabel(kind.clusters, kind.clock)))


def test_a_field_that_is_no_longer_set_is_named(harness: ObjectHarness) -> None:
    with pytest.raises(AssertionError, match=rf"read-only: writes: \('{LABELS}',\)"):
        play_upgrade(harness, MAP, KindUpgrade(old=adding_label))


def test_a_declared_write_that_does_not_happen_is_named(harness: ObjectHarness) -> None:
    with pytest.raises(AssertionError, match="read-only: in sync"):
        play_upgrade(harness, MAP, KindUpgrade(writes=(LABELS,)))


@dataclass(slots=True)
class WritesOnObserve(KubernetesObjectKind):
    """Writes whenever it observes."""

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveObject] | Unchanged:
        """The observation after a write."""
        parsed = parse_object_location(location)
        reach = await self.clusters.connect(parsed.cluster)
        endpoint = (await reach.discovery.find(parsed.api_version, parsed.kind)).endpoint(parsed.namespace, parsed.name)
        body: dict[str, Any] = {
            "apiVersion": parsed.api_version,
            "kind": parsed.kind,
            "metadata": {"labels": {"seen": "yes"}},
        }
        await reach.client.apply(endpoint, body, Options("another-writer"))
        return await KubernetesObjectKind.observe(self, location, known)


def test_a_kind_that_writes_while_it_observes_is_named_and_blocked(harness: ObjectHarness) -> None:
    with pytest.raises(AssertionError, match=r"it writes while it looks: \['PATCH "):
        play_upgrade(harness, MAP, KindUpgrade(new=lambda kind: WritesOnObserve(kind.clusters, kind.clock)))

    assert "labels" not in (harness.live(*MAP.location) or {})["metadata"]


@dataclass(slots=True)
class UndeclaredWrites(AddsLabel):
    """Plans no write in previews, and writes in the step."""

    observations: int = 0

    async def dry_run(
        self, intent: Intent, observation: LiveObservation, decision: Decision
    ) -> tuple[PlannedWrite, ...]:
        """Empty for both previews, then the writes."""
        self.observations += 1
        return () if self.observations <= 2 else await AddsLabel.dry_run(self, intent, observation, decision)


def test_a_kind_that_writes_more_than_it_previews_is_named(harness: ObjectHarness) -> None:
    with pytest.raises(AssertionError, match=r"for real: \['PATCH "):
        play_upgrade(
            harness, MAP, KindUpgrade(new=lambda kind: UndeclaredWrites(kind.clusters, kind.clock, revision=2))
        )


@dataclass(slots=True)
class NeverSettles(KubernetesObjectKind):
    """Observes another object each time."""

    observations: int = 0

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveObject] | Unchanged:
        """Another uid for each observation."""
        found = await KubernetesObjectKind.observe(self, location)
        assert isinstance(found, Present)
        self.observations += 1
        return replace(found, live=structs.replace(found.live, uid=str(self.observations)), body=str(self.observations))


def test_a_kind_that_never_settles_is_named(harness: ObjectHarness) -> None:
    with pytest.raises(AssertionError, match="read-only: unsettled"):
        play_upgrade(harness, MAP, KindUpgrade(new=lambda kind: NeverSettles(kind.clusters, kind.clock)))


def test_a_former_revision_that_a_kind_declares_is_upgraded(harness: ObjectHarness) -> None:
    play_former_revisions(harness, MAP, adding_label, {1: (LABELS,)})


def test_an_undeclared_write_to_objects_of_a_former_revision_is_named(harness: ObjectHarness) -> None:
    with pytest.raises(AssertionError, match=LABELS):
        play_former_revisions(harness, MAP, adding_label, {})
