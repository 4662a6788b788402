"""Waits with a running controller, to which other commands hand over."""

from typing import Any

from tests.cluster.polling import until
from tests.cluster.running.proxy import cut_off, no_fault
from tests.cluster.waiting.four_waits import AT_START, NAMES, four_objects, report_done, uids
from tests.cluster.waiting.manifests import ADDRESS, config_map, job, kubernetes_object, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness


def test_an_apply_that_hands_over_returns_when_all_waits_are_satisfied(harness: WaitHarness) -> None:
    harness.run_controller()
    running = harness.start_apply(*four_objects())
    running.until_printed(*(f"KubernetesObject here/{name} waiting: {why}\n" for name, why in AT_START.items()))
    report_done(harness.controllers)
    code, text = running.result()

    assert code == 0, text
    for name in NAMES:
        assert f"KubernetesObject here/{name} created\n" in text
    assert harness.controllers.get("ConfigMap/dependant") is not None
    assert len(harness.writes()) == 5


def test_an_apply_after_a_timeout_waits_again(harness: WaitHarness) -> None:
    harness.run_controller()
    first, begun = harness.apply(*four_objects("1s")), _begun(harness)
    created = uids(harness.controllers)
    second, begun_again = harness.apply(*four_objects("1s")), _begun(harness)
    report_done(harness.controllers)
    until(lambda: harness.controllers.get("ConfigMap/dependant") is not None)
    third = harness.apply(*four_objects("1s"))

    assert (first.code, second.code, third.code) == (3, 3, 0)
    for name in NAMES:
        assert f"KubernetesObject here/{name} timed out: not within 1 s: {AT_START[name]}. " in second.text
        assert begun_again[name] > begun[name]
    assert uids(harness.controllers) == created


def _begun(harness: WaitHarness) -> dict[str, str]:
    """When each wait began."""
    return {name: harness.status(name)["setpoint"]["wait"]["since"] for name in NAMES}


def test_a_failure_ends_the_apply_and_a_second_try_is_waited_for(harness: WaitHarness) -> None:
    harness.run_controller()
    manifest = kubernetes_object(job("migrate"), waitFor={"rollout": True, "timeout": "240s"})
    running = harness.start_apply(manifest)
    running.until_printed("KubernetesObject here/migrate waiting: 0 of 1 completions\n")
    harness.controllers.report_failed("Job/migrate", "it did not work")
    code, text = running.result()
    harness.controllers.delete("Job/migrate")
    until(lambda: harness.controllers.get("Job/migrate") is not None)
    harness.controllers.report_complete("Job/migrate")
    until(lambda: harness.ready("migrate")[0] == "UpToDate")

    assert code == 1
    assert "KubernetesObject here/migrate failed: BackoffLimitExceeded: it did not work\n" in text


def _web() -> list[Any]:
    web = kubernetes_object(service("web"), waitFor={"field": ADDRESS, "timeout": "240s"})
    return [web, kubernetes_object(config_map("needs-it", address=value_of("web")))]


def test_an_output_is_unknown_while_the_cluster_is_unreachable(harness: WaitHarness) -> None:
    controller = harness.run_controller()
    running = harness.start_apply(*_web())
    running.until_printed("KubernetesObject here/web waiting")
    harness.controllers.report_address("Service/web", "203.0.113.1")
    assert running.result().code == 0
    harness.set_fault(cut_off)
    harness.cut()
    harness.controllers.report_address("Service/web", "203.0.113.2")
    harness.setpoint("reconcile", "KubernetesObject/web", "-n", harness.namespace, "--timeout", "1s")
    until(lambda: harness.output("web")["state"] == "unknown")
    reason = harness.output("web")["reason"]
    harness.set_fault(no_fault)
    until(lambda: harness.controllers.get("ConfigMap/needs-it")["data"]["address"] == "203.0.113.2")
    until(lambda: harness.output("web")["state"] == "known")

    assert reason.startswith("the read failed: ")
    assert harness.writes("ConfigMap/needs-it") == ["PATCH", "PATCH"]
    assert controller.bugs() == []
