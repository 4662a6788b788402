"""How many requests to the API server an object costs, with resources that are kept elsewhere."""

from typing import Any

import pytest

from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import HeldByOthers
from tests.cluster.objects.object_harness import ObjectHarness, config_map, deployment
from tests.cluster.objects.sent_requests import SentRequests


@pytest.mark.parametrize("manifest", [config_map("web", a="1"), deployment()])
def test_the_answer_of_a_write_is_the_observation_after_it(
    manifest: Any, harness: ObjectHarness, requests: SentRequests
) -> None:
    harness.settle(manifest)

    assert requests.take() == ["GET", "dry run", "PATCH"]
    harness.settle(manifest | {"metadata": {"name": "web", "labels": {"edited": "true"}}})
    assert requests.take() == ["GET", "dry run", "PATCH"]
    harness.step()
    assert requests.take() == ["GET"]


def test_a_drift_is_corrected_without_a_look_after_it(harness: ObjectHarness, requests: SentRequests) -> None:
    harness.settle(config_map(a="1"))
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "2"}})
    requests.take()
    harness.step()

    # No other manager applies the object: the dry run is that of the forced apply.
    assert requests.take() == ["GET", "dry run", "PATCH"]
    harness.step()
    assert requests.take() == ["GET"]


def test_a_field_that_another_manager_applies_by_now_is_asked_for_without_force(
    harness: ObjectHarness, requests: SentRequests
) -> None:
    harness.settle(config_map(a="1"))
    endpoint = Endpoint("", "v1", "configmaps", harness.namespace, "map")
    body = config_map(a="2") | {"metadata": {"name": "map", "namespace": harness.namespace}}
    harness.apply_as("another", endpoint, body, force=True)
    requests.take()

    assert isinstance(harness.stop_reason(), HeldByOthers)
    assert requests.take() == ["GET", "dry run"]
    found = harness.live("configmaps", "map")
    assert found is not None
    assert found["data"] == {"a": "2"}


def test_what_the_server_has_in_another_form_is_left_to_a_dry_run(
    harness: ObjectHarness, requests: SentRequests
) -> None:
    sized = deployment()
    sized["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m"}}
    outcome = harness.settle(sized)

    assert requests.take() == ["GET", "dry run", "PATCH", "dry run"]
    assert outcome.plan.writes
    again = harness.step()
    assert isinstance(again, Settled)
    assert again.plan.is_empty


def test_a_field_that_was_ignored_is_sent_as_it_is_and_nothing_is_left(
    harness: ObjectHarness, requests: SentRequests
) -> None:
    harness.settle(config_map(a="1", b="1"), ignoreFields=["data.b"])
    harness.edit(harness.path("configmaps", "map"), {"data": {"b": "2"}})
    harness.step()
    requests.take()
    harness.settle(config_map(a="2", b="1"), ignoreFields=["data.b"])

    assert requests.take() == ["GET", "dry run", "PATCH"]
    found = harness.live("configmaps", "map")
    assert found is not None
    assert found["data"] == {"a": "2", "b": "2"}
