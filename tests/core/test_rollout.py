"""Rollouts of the built-in workloads."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.json_types import Json
from setpoint.core.wait.rollout import require_rollout, rollout_pending
from setpoint.errors import ManifestInvalid
from tests.laws.json_values import json_values

API = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1"}


def workload(kind: str, spec: Json, status: Json) -> Json:
    named: Json = {"name": "web", "namespace": "shop", "generation": 2}
    return {"apiVersion": API[kind], "kind": kind, "metadata": named, "spec": spec, "status": status}


def seen(**counts: int) -> Json:
    return {"observedGeneration": 2, **counts}


@given(st.sampled_from(sorted(API)), json_values, json_values)
def test_no_spec_or_status_breaks_a_rollout(kind: str, spec: Json, status: Json) -> None:
    assert rollout_pending(workload(kind, spec, status)) != ""


@given(st.integers(0, 9), st.integers(0, 12), st.integers(0, 9), st.integers(0, 9))
def test_a_deployment_is_complete_exactly_when_every_count_is_the_wanted_one(
    wanted: int, total: int, updated: int, available: int
) -> None:
    status = seen(replicas=total, updatedReplicas=updated, availableReplicas=available)

    complete = updated >= wanted and total <= wanted and available >= wanted
    assert (rollout_pending(workload("Deployment", {"replicas": wanted}, status)) is None) is complete


@given(st.sampled_from(("Deployment", "StatefulSet", "DaemonSet")), st.integers(0, 1))
def test_no_count_of_an_older_generation_completes_a_rollout(kind: str, observed: int) -> None:
    status: Json = {"observedGeneration": observed, "desiredNumberScheduled": 0}

    assert rollout_pending(workload(kind, {"replicas": 0}, status)) == (
        f"the status is out of date: it speaks of generation {observed}, and the object is at generation 2"
    )


@pytest.mark.parametrize(
    ("spec", "status", "left"),
    [
        ({"replicas": 3}, {}, "the controller has not reported yet"),
        ({"replicas": 3}, "ready", "the controller has not reported yet"),
        ({"replicas": 3}, seen(updatedReplicas=1), "1 of 3 replicas updated"),
        ({"replicas": 3}, seen(updatedReplicas=3, replicas=4), "1 old replica still there"),
        ({"replicas": 3}, seen(updatedReplicas=5, replicas=5), "2 old replicas still there"),
        (
            {"replicas": 3},
            seen(updatedReplicas=3, replicas=3, availableReplicas=2),
            "2 of 3 replicas available",
        ),
        ({"replicas": 3}, seen(updatedReplicas=3, replicas=3, availableReplicas=3), None),
        ({"replicas": 0}, seen(), None),
        ({}, seen(), "0 of 1 replica updated"),
        ({"replicas": "3"}, seen(updatedReplicas=1, replicas=1, availableReplicas=1), None),
        ({"replicas": True}, seen(), "0 of 1 replica updated"),
        ({"paused": True}, seen(), "0 of 1 replica updated; the rollout is paused by spec.paused"),
        ({"paused": True, "replicas": 0}, seen(), None),
    ],
)
def test_a_deployment_reports_what_is_pending(spec: Json, status: Json, left: str | None) -> None:
    assert rollout_pending(workload("Deployment", spec, status)) == left


@pytest.mark.parametrize(
    ("spec", "status", "left"),
    [
        ({"replicas": 3}, seen(updatedReplicas=2, replicas=3), "2 of 3 replicas updated"),
        ({"replicas": 2}, seen(updatedReplicas=2, replicas=3), "1 old replica still there"),
        (
            {"replicas": 3},
            seen(updatedReplicas=3, replicas=3, availableReplicas=0),
            "0 of 3 replicas available",
        ),
        ({"replicas": 3}, seen(updatedReplicas=3, replicas=3, availableReplicas=3), None),
        ({"replicas": 3}, seen(updatedReplicas=3, replicas=3, readyReplicas=3), None),
        (
            {"replicas": 3},
            seen(updatedReplicas=3, readyReplicas=3, availableReplicas=1),
            "1 of 3 replicas available",
        ),
        ({}, seen(), "0 of 1 replica updated"),
        ({"replicas": 0}, seen(), None),
    ],
)
def test_a_stateful_set_reports_what_is_pending(spec: Json, status: Json, left: str | None) -> None:
    assert rollout_pending(workload("StatefulSet", spec, status)) == left


@pytest.mark.parametrize(
    ("partition", "updated", "left"),
    [
        (2, 0, "0 of 1 replica updated"),
        (2, 1, None),
        (3, 0, None),
        (9, 0, None),
        ("2", 1, "1 of 3 replicas updated"),
    ],
)
def test_a_partitioned_stateful_set_updates_only_above_the_partition(
    partition: Json, updated: int, left: str | None
) -> None:
    strategy: Json = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    status = seen(updatedReplicas=updated, replicas=3, availableReplicas=3)

    assert rollout_pending(workload("StatefulSet", {"replicas": 3, "updateStrategy": strategy}, status)) == left


@pytest.mark.parametrize(
    ("status", "left"),
    [
        (seen(), "it is not known yet how many nodes it runs on"),
        (seen(desiredNumberScheduled=2, updatedNumberScheduled=1), "1 of 2 replicas updated"),
        (seen(desiredNumberScheduled=2, updatedNumberScheduled=2), "0 of 2 replicas available"),
        (seen(desiredNumberScheduled=2, updatedNumberScheduled=2, numberAvailable=2), None),
        (seen(desiredNumberScheduled=0), None),
    ],
)
def test_a_daemon_set_reports_what_is_pending(status: Json, left: str | None) -> None:
    assert rollout_pending(workload("DaemonSet", {}, status)) == left


def test_pods_that_are_updated_on_delete_need_not_be_updated() -> None:
    spec: Json = {"replicas": 2, "updateStrategy": {"type": "OnDelete"}}
    stateful = seen(replicas=2, availableReplicas=2)
    daemon = seen(desiredNumberScheduled=2, numberAvailable=2)

    assert rollout_pending(workload("StatefulSet", spec, stateful)) is None
    assert rollout_pending(workload("DaemonSet", spec, daemon)) is None


@pytest.mark.parametrize(
    ("spec", "status", "left"),
    [
        ({}, {}, "0 of 1 completions"),
        ({"completions": 3}, {"succeeded": 2}, "2 of 3 completions"),
        ({"suspend": True}, {}, "the Job is suspended by spec.suspend"),
        ({}, {"conditions": [{"type": "Complete", "status": "False"}]}, "0 of 1 completions"),
        ({}, {"conditions": {"Complete": "True"}}, "0 of 1 completions"),
        ({}, {"conditions": [{"type": "Complete", "status": "True"}]}, None),
    ],
)
def test_a_job_reports_what_is_pending(spec: Json, status: Json, left: str | None) -> None:
    assert rollout_pending(workload("Job", spec, status)) == left


@pytest.mark.parametrize(
    ("live", "what"),
    [
        ({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}, "Service web (v1)"),
        ({"apiVersion": "apps.example.com/v1", "kind": "Deployment"}, "Deployment (apps.example.com/v1)"),
        ({"apiVersion": "apps", "kind": "Deployment"}, "Deployment (apps)"),
        ({}, "the object (no apiVersion)"),
        ([], "the object (no apiVersion)"),
    ],
)
def test_other_kinds_have_no_rollout_and_the_error_says_which_have(live: Json, what: str) -> None:
    message = (
        f"waitFor.rollout: {what} has no rollout; these have: "
        "Deployment (apps), StatefulSet (apps), DaemonSet (apps), Job (batch)"
    )

    with pytest.raises(ManifestInvalid, match=re.escape(message)):
        rollout_pending(live)
    with pytest.raises(ManifestInvalid, match=re.escape(message)):
        require_rollout(live)


def test_every_version_of_the_group_has_the_rollout() -> None:
    require_rollout({"apiVersion": "apps/v1beta2", "kind": "StatefulSet"})
