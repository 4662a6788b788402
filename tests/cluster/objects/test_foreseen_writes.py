"""Writes of a controller that are foreseen without a dry run: what they change is what the dry run would have shown."""

import asyncio
from typing import Any

import pytest

from setpoint.core.decide import Decision
from setpoint.core.redaction import REDACTED
from setpoint.core.values.json_types import MISSING
from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import Intent, LiveObservation, observe_decoded
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import HeldByOthers, RemoteConflict, RemoteRefused
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map, deployment
from tests.cluster.objects.sent_requests import SentRequests

LABELLED: Tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "labels": {"a": "1"}}}
SECRET: Tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "map"}, "stringData": {"a": "1"}}


def controlled_step(harness: ObjectHarness) -> StepOutcome:
    """One step of a controller."""
    harness.is_controller = True
    return harness.step()


async def planned(harness: ObjectHarness) -> tuple[Intent, LiveObservation]:
    resource = await harness.store.get(harness.ref())
    assert resource is not None
    intent = await resolve_intent(resource, harness.engine)
    return intent, await observe_decoded(intent.location, harness.kind)


def with_replicas(count: int) -> Tree:
    return deployment("map", replicas=count)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (config_map(a="1"), config_map(a="2")),
        (config_map(a="1", b="1"), config_map(a="1", b="2", c="1")),
        (config_map(a="1"), {**config_map(a="1"), "metadata": {"name": "map", "labels": {"x.y/z": "1"}}}),
        (config_map(a="1"), {**config_map(a="1"), "immutable": True}),
        (with_replicas(1), with_replicas(2)),
        (SECRET, {**SECRET, "stringData": {"a": "2"}}),
        (None, config_map(a="1")),
        (None, LABELLED),
        (None, SECRET),
    ],
)
def test_what_is_foreseen_is_what_a_dry_run_shows(before: Any, after: Tree, harness: ObjectHarness) -> None:
    if before is not None:
        harness.settle(before)
    harness.declare(after)
    intent, observed = harness.run(planned(harness))
    shown = harness.run(harness.kind.dry_run(intent, observed, Decision.INTENT_CHANGED))
    foreseen = harness.run(harness.kind.foresee(intent, observed))

    assert foreseen is not None
    if after["kind"] != "Secret":
        # The API server moves `stringData`: nothing but the name of the field differs.
        assert {str(one.path): one for one in foreseen.changes} == {str(one.path): one for one in shown[0].changes}


@pytest.mark.parametrize(
    ("before", "after", "options"),
    [
        # Only the API server can tell how lists are merged.
        (deployment("map"), deployment("map", image="nginx:2"), {}),
        (None, deployment("map"), {}),
        (config_map(a="1"), config_map(a="2"), {"ignoreFields": ["data.b"]}),
        (config_map(a="1"), config_map(a="2"), {"takeOverFrom": ["other"]}),
        (config_map(a="1"), config_map(a="2"), {"replace": True}),
        # Nothing differs: perhaps fields have another owner.
        (config_map(a="1"), config_map(a="1"), {"forceConflicts": True}),
        (None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "map"}}, {}),
        (None, {**config_map(a="1"), "metadata": {"name": "map", "namespace": "default"}}, {}),
        (config_map(a="1"), {**config_map(), "data": {"a": None}}, {}),
        # It goes, or gets a default.
        (config_map(a="1", b="1"), config_map(a="1", c="1"), {}),
        (LABELLED, {**LABELLED, "metadata": {"name": "map", "labels": {}}}, {}),
        (with_replicas(1), deployment("map"), {}),
        # An empty object may be left out by the API server.
        (LABELLED, {**LABELLED, "data": {}}, {}),
        (None, {**LABELLED, "data": {}}, {}),
    ],
)
def test_what_only_the_api_server_can_tell_is_not_foreseen(
    before: Any, after: Tree, options: Tree, harness: ObjectHarness
) -> None:
    if before is not None:
        harness.settle(before)
    harness.declare(after, **options)
    intent, observed = harness.run(planned(harness))

    assert harness.run(harness.kind.foresee(intent, observed)) is None


def test_a_controller_sends_no_dry_run_and_its_plan_has_what_was_changed(
    harness: ObjectHarness, requests: SentRequests
) -> None:
    harness.declare(config_map(a="1"))
    created = controlled_step(harness)
    assert requests.take() == ["GET", "PATCH"]
    harness.declare(config_map(a="2", b="2"))
    edited = controlled_step(harness)

    assert requests.take() == ["GET", "PATCH"]
    assert isinstance(created, Settled)
    assert isinstance(edited, Settled)
    assert {str(one.path): one.after for one in created.plan.changes} == {"data.a": "1"}
    assert {str(one.path): one.after for one in edited.plan.changes} == {"data.a": "2", "data.b": "2"}
    assert [one.is_foreseen for one in (*created.plan.writes, *edited.plan.writes)] == [False, False]


def test_secret_values_are_in_no_plan_though_no_dry_run_was_sent(harness: ObjectHarness) -> None:
    """By the data that was foreseen, and by `stringData`, which the API server has as data."""
    made: Tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "map"}, "data": {"a": "c2VzYW1l"}}
    for manifest in (made, {**made, "data": {"a": "b3BlbiBzZXNhbWU="}}, {**SECRET, "stringData": {"b": "sesame"}}):
        harness.declare(manifest)
        outcome = controlled_step(harness)
        assert isinstance(outcome, Settled)
        assert outcome.plan.changes
        assert {side for one in outcome.plan.changes for side in (one.before, one.after)} <= {REDACTED, MISSING}
        assert "sesame" not in str(harness.status())
        assert "c2VzYW1l" not in str(harness.status())


def test_an_edit_that_changes_nothing_after_all_is_no_write(harness: ObjectHarness) -> None:
    claim: Tree = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "map"},
        "spec": {"hard": {"requests.storage": "1Gi"}},
    }
    harness.settle(claim)
    harness.declare({**claim, "spec": {"hard": {"requests.storage": "1024Mi"}}})
    outcome = controlled_step(harness)

    assert isinstance(outcome, Settled)
    assert outcome.plan.writes == ()
    assert harness.ready() == ("True", "UpToDate")


def test_an_object_that_changes_between_the_look_and_the_write_is_not_written(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    harness.declare(config_map(a="2"))
    intent, observed = harness.run(planned(harness))
    write = harness.run(harness.kind.foresee(intent, observed))
    assert write is not None
    harness.edit(harness.path("configmaps", "map"), {"data": {"b": "of another writer"}})

    with pytest.raises(RemoteConflict):
        harness.run(harness.kind.update(intent, {}, write, observed))  # type: ignore[arg-type] # it exists

    found = harness.live("configmaps", "map")
    assert found is not None
    assert found["data"] == {"a": "1", "b": "of another writer"}


def test_a_field_of_another_manager_is_a_conflict_without_a_dry_run_too(
    harness: ObjectHarness, requests: SentRequests
) -> None:
    harness.settle(config_map(a="1"))
    harness.edit(harness.path("configmaps", "map"), {"data": {"b": "1"}})
    controlled_step(harness)
    requests.take()
    harness.declare(config_map(a="1", b="2"))
    outcome = controlled_step(harness)

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, HeldByOthers)
    assert requests.take() == ["GET", "PATCH"]
    assert harness.ready() == ("False", "UpdateFailed")


def test_a_creation_that_is_refused_leaves_no_claim(harness: ObjectHarness) -> None:
    harness.declare(config_map() | {"data": {"not a key": "1"}})
    outcome = controlled_step(harness)

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, RemoteRefused)
    assert {"location", "creating"} & harness.status()["setpoint"].keys() == set()
    # An object that another writer creates is adopted, not taken for the one that was refused.
    harness.access.call("POST", harness.path("configmaps"), config_map(a="1"))
    harness.declare(config_map(a="1"))
    adopted = controlled_step(harness)
    assert isinstance(adopted, Settled)
    assert adopted.plan.is_adoption


def test_an_object_that_another_writer_deleted_is_created_again_without_a_dry_run(
    harness: ObjectHarness, requests: SentRequests
) -> None:
    harness.settle(config_map(a="1"))
    harness.access.call("DELETE", harness.path("configmaps", "map"))
    requests.take()
    outcome = controlled_step(harness)

    assert isinstance(outcome, Settled)
    assert outcome.plan.reason == "deleted"
    assert requests.take() == ["GET", "PATCH"]


def test_steps_of_one_process_at_once_do_not_mix_up_their_objects(harness: ObjectHarness) -> None:
    names = [f"map-{number}" for number in range(20)]
    for name in names:
        harness.declare(config_map(name, a=name), name)

    async def all_steps() -> list[StepOutcome]:
        return await asyncio.gather(*(step(harness.ref(name), harness.engine) for name in names))

    harness.is_controller = True
    for outcome, name in zip(harness.run(all_steps()), names, strict=True):
        assert isinstance(outcome, Settled)
        assert [one.after for one in outcome.plan.changes] == [name]
