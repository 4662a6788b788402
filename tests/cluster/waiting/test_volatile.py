"""Frequent status updates by controllers change neither plans nor objects nor outputs."""

import time
from typing import Any

import pytest

from setpoint.runtime.remote_watch import COALESCE_SECONDS
from tests.cluster.polling import until
from tests.cluster.waiting.fake_controllers import FakeControllers, condition
from tests.cluster.waiting.manifests import ADDRESS, config_map, deployment, kubernetes_object, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness

# The first number of updates has every state of both statuses once, the second makes events overlap with reads.
FEW, MANY = 8, 1000
KNOWN = {"state": "known", "value": {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}}}


def _manifests() -> list[Any]:
    return [
        kubernetes_object(service("web"), waitFor={"field": ADDRESS, "timeout": "240s"}),
        kubernetes_object(deployment("app"), waitFor={"rollout": True, "timeout": "240s"}),
        kubernetes_object(config_map("needs-it", address=value_of("web"))),
    ]


@pytest.fixture
def settled(harness: WaitHarness) -> WaitHarness:
    """A harness in which all waits are satisfied."""
    running = harness.start_apply(*_manifests())
    running.until_printed("KubernetesObject here/web waiting", "KubernetesObject here/app waiting")
    harness.controllers.report_address("Service/web", "203.0.113.1")
    harness.controllers.report_replicas("Deployment/app", 3)
    assert running.result().code == 0
    return harness


def _flap_statuses(controllers: FakeControllers, updates: int) -> None:
    """So many updates of two statuses."""
    generation = controllers.generation("Deployment/app")
    for number in range(updates // 2):
        at = f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z"
        flap = {"reason": f"Flap{number}", "message": "", "lastTransitionTime": at}
        controllers.patch_status("Service/web", conditions=[condition("Programmed", "True", **flap)])
        up, progress = number % 4, condition("Progressing", "True", **flap, lastUpdateTime=at)
        counts = {"replicas": 3, "updatedReplicas": up, "readyReplicas": up, "availableReplicas": up}
        controllers.patch_status("Deployment/app", **counts, observedGeneration=generation, conditions=[progress])


def _assert_settled(harness: WaitHarness, written: list[str]) -> None:
    code, text = harness.plan(*_manifests())

    assert (code, harness.writes()) == (0, written), text
    assert (harness.output("web"), harness.output("app")) == (KNOWN, {"state": "null"})
    code, text = harness.apply(*_manifests())
    unchanged = [f"KubernetesObject here/{name} unchanged" for name in ("app", "needs-it", "web")]
    assert (code, sorted(text.splitlines())) == (0, [*unchanged, "unchanged 3"])
    assert harness.writes() == written


def test_status_updates_change_no_plan_and_write_nothing(settled: WaitHarness) -> None:
    written = settled.writes()
    _flap_statuses(settled.controllers, FEW)

    assert written == ["PATCH"] * 3
    _assert_settled(settled, written)


def test_a_running_controller_writes_nothing_for_a_thousand_status_updates(settled: WaitHarness) -> None:
    written, controller = settled.writes(), settled.run_controller()
    until(lambda: settled.watches() >= 3)
    started = time.monotonic()
    _flap_statuses(settled.controllers, MANY)
    reads, seconds = settled.reads_of("Service/web"), time.monotonic() - started
    settled.controllers.patch_status("Service/web", conditions=None)
    until(lambda: settled.reads_of("Service/web") > reads)

    # It observed them, in one step for all updates of half a second; a step that finds a change reads twice.
    assert 1 < reads <= 2 * (seconds / COALESCE_SECONDS + 2)
    assert controller.logged("step to be retried") == []
    _assert_settled(settled, written)


def test_an_object_with_only_a_declared_name_leaves_all_fields_to_other_writers(harness: WaitHarness) -> None:
    bare = kubernetes_object({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}})
    planned = harness.plan(bare)
    assert harness.apply(bare).code == 0
    harness.controllers.edit("ConfigMap/bare", data={"key": "of another writer"})

    assert '+  metadata.name  unset → "bare"' in planned.text
    assert harness.plan(bare).code == 0
    assert harness.apply(bare).text == "KubernetesObject here/bare unchanged\nunchanged 1\n"
    assert harness.writes() == ["PATCH"]
