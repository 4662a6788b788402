"""An announced claim is an annotation, which authors can write: it deletes no object that its resource did not make."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.core.values.durations import rfc3339
from setpoint.engine.context import FINALIZER
from setpoint.engine.ports import ResourceUpdate, SystemClock
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Gone, StepOutcome, Stopped
from setpoint.errors import RecordLost
from setpoint.stores.memory import MemoryStore
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import ObjectHarness, config_map

VICTIM = "victim"


class LaterClock(SystemClock):
    """The time in an hour."""

    def now(self) -> str:
        """See Clock."""
        return rfc3339(int((datetime.now(UTC) + timedelta(hours=1)).timestamp()))


@pytest.fixture(params=["alone", "a replica"])
def harness(request: pytest.FixtureRequest, api_server: Access, namespace: str) -> Iterator[ObjectHarness]:
    """An engine that reconciles KubernetesObjects."""
    environment = {"KUBECONFIG": str(api_server.kubeconfig)}
    made = ObjectHarness(
        api_server, namespace, environment, is_controller=True, is_replica=request.param == "a replica"
    )
    yield made
    made.close()


def make(harness: ObjectHarness, manager: str) -> None:
    """A field manager creates the object that a forged claim names."""
    endpoint = Endpoint("", "v1", "configmaps", harness.namespace, VICTIM)
    body: Any = config_map(VICTIM, a="1")
    body["metadata"]["namespace"] = harness.namespace
    harness.apply_as(manager, endpoint, body)


def forge(harness: ObjectHarness, resource: Resource) -> None:
    """Its author writes that the resource announced to claim the object, and that it may have one."""
    location = harness.location(resource.ref.name)
    prefix, _, cluster = location.partition(" @ ")
    named = f"{prefix.rpartition('/')[0]}/{VICTIM} @ {cluster}"
    claim = {"setpoint.dev/claim": f"{resource.uid} {named}"}
    harness.run(harness.store.update(resource, ResourceUpdate(finalizers=(FINALIZER,), annotations=claim)))


def deletion(harness: ObjectHarness, name: str = "one") -> StepOutcome:
    """The end of the resource's deletion."""
    harness.run(harness.store.delete(harness.ref(name)))
    return harness.step_until_done(name)


@pytest.mark.parametrize("manager", ["kubectl", "setpoint/another/resource"])
def test_an_object_of_another_writer_stays(harness: ObjectHarness, manager: str) -> None:
    make(harness, manager)
    forge(harness, harness.declare(config_map("own"), "one"))

    assert isinstance(deletion(harness), Gone)
    assert harness.live("configmaps", VICTIM) is not None


def test_an_object_of_another_writer_that_the_resource_declares_stays(harness: ObjectHarness) -> None:
    make(harness, "kubectl")
    forge(harness, harness.declare(config_map(VICTIM), "one"))

    outcome = deletion(harness)

    # A status that was wiped looks the same: the author has to decide.
    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, RecordLost)
    assert harness.live("configmaps", VICTIM) is not None


def test_an_object_that_an_earlier_resource_of_the_same_name_left_stays(harness: ObjectHarness) -> None:
    harness.settle(config_map(VICTIM, a="1"), "one")
    harness.forget("one")
    harness.store = MemoryStore(LaterClock(), lambda: str(uuid.uuid4()))
    forge(harness, harness.declare(config_map("own"), "one"))

    assert isinstance(deletion(harness), Gone)
    assert harness.live("configmaps", VICTIM) is not None


def test_an_object_that_another_resource_has_by_now_stays(api_server: Access, namespace: str) -> None:
    harness = ObjectHarness(api_server, namespace, {"KUBECONFIG": str(api_server.kubeconfig)}, is_controller=True)
    one = harness.declare(config_map("own"), "one")
    harness.settle(config_map(VICTIM, a="1"), "two")
    make(harness, f"setpoint/{namespace}/one")
    forge(harness, one)

    assert isinstance(deletion(harness), Gone)
    assert harness.live("configmaps", VICTIM) is not None
    harness.close()
