"""What controllers write again and again is no change: no plan, no write, no other value."""

from typing import Any

import pytest

from tests.cluster.polling import until
from tests.cluster.waiting.fake_controllers import FakeControllers, condition
from tests.cluster.waiting.manifests import ADDRESS, config_map, deployment, kept, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness

CHANGES = 1000
KNOWN = {"state": "known", "value": {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}}}


def _manifests() -> list[Any]:
    return [
        kept(service("web"), waitFor={"field": ADDRESS, "timeout": "240s"}),
        kept(deployment("app"), waitFor={"rollout": True, "timeout": "240s"}),
        kept(config_map("needs-it", address=value_of("web"))),
    ]


@pytest.fixture
def settled(harness: WaitHarness) -> WaitHarness:
    """A stage on which all that is waited for has come."""
    applying = harness.begin_apply(*_manifests())
    applying.until_said("KubernetesObject here/web waiting", "KubernetesObject here/app waiting")
    harness.controllers.give_address("Service/web", "203.0.113.1")
    harness.controllers.bring_up("Deployment/app", 3)
    assert applying.ended().code == 0
    return harness


def _fidget(controllers: FakeControllers) -> None:
    """A thousand changes of two statuses, as of a controller that cannot make up its mind."""
    generation = controllers.generation("Deployment/app")
    for number in range(CHANGES // 2):
        at = f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z"
        beat = {"reason": f"Beat{number}", "message": "", "lastTransitionTime": at}
        controllers.report("Service/web", conditions=[condition("Programmed", "True", **beat)])
        up, progress = number % 4, condition("Progressing", "True", **beat, lastUpdateTime=at)
        counts = {"replicas": 3, "updatedReplicas": up, "readyReplicas": up, "availableReplicas": up}
        controllers.report("Deployment/app", **counts, observedGeneration=generation, conditions=[progress])


def _is_at_rest(harness: WaitHarness, written: list[str]) -> None:
    code, text = harness.plan(*_manifests())

    assert (code, harness.writes()) == (0, written), text
    assert (harness.output("web"), harness.output("app")) == (KNOWN, {"state": "null"})
    code, text = harness.apply(*_manifests())
    unchanged = [f"KubernetesObject here/{name} unchanged" for name in ("app", "needs-it", "web")]
    assert (code, sorted(text.splitlines())) == (0, unchanged)
    assert harness.writes() == written


def test_a_thousand_changes_of_status_change_no_plan_and_write_nothing(settled: WaitHarness) -> None:
    written = settled.writes()
    _fidget(settled.controllers)

    assert written == ["PATCH"] * 3
    _is_at_rest(settled, written)


def test_a_process_that_hears_of_all_of_them_writes_nothing_either(settled: WaitHarness) -> None:
    written, keeper = settled.writes(), settled.keep()
    until(lambda: settled.watches() >= 3)
    _fidget(settled.controllers)
    looks = settled.looks_at("Service/web")
    settled.controllers.report("Service/web", conditions=None)
    until(lambda: settled.looks_at("Service/web") > looks)

    # It has heard of them, and looked; many changes are one look.
    assert 1 < looks < CHANGES // 4
    assert keeper.said("step to be retried") == []
    _is_at_rest(settled, written)


def test_an_object_of_which_only_the_name_is_declared_is_others_to_fill(harness: WaitHarness) -> None:
    bare = kept({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}})
    planned = harness.plan(bare)
    assert harness.apply(bare).code == 0
    harness.controllers.edit("ConfigMap/bare", data={"key": "of another writer"})

    assert '+  metadata.name  unset → "bare"' in planned.text
    assert harness.plan(bare).code == 0
    assert harness.apply(bare).text == "KubernetesObject here/bare unchanged\n"
    assert harness.writes() == ["PATCH"]
