"""Waits while `setpoint run` is at work: other commands hand over to it, and it goes on for ever."""

from typing import Any

from tests.cluster.polling import until
from tests.cluster.running.proxy import cut_off, no_fault
from tests.cluster.waiting.four_waits import AT_FIRST, NAMES, four, play, uids
from tests.cluster.waiting.manifests import ADDRESS, config_map, job, kept, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness


def test_an_apply_that_hands_over_waits_until_all_has_come(harness: WaitHarness) -> None:
    harness.keep()
    applying = harness.begin_apply(*four())
    applying.until_said(*(f"KubernetesObject here/{name} waiting: {why}\n" for name, why in AT_FIRST.items()))
    play(harness.controllers)
    code, text = applying.ended()

    assert code == 0, text
    for name in NAMES:
        assert f"KubernetesObject here/{name} created\n" in text
    assert harness.controllers.see("ConfigMap/dependant") is not None
    assert len(harness.writes()) == 5


def test_an_apply_after_a_timeout_waits_again_and_goes_on(harness: WaitHarness) -> None:
    harness.keep()
    first = harness.apply(*four("4s"))
    made = uids(harness.controllers)
    applying = harness.begin_apply(*four("4s"))
    applying.until_said(*(f"KubernetesObject here/{name} waiting: {why}\n" for name, why in AT_FIRST.items()))
    second = applying.ended()
    play(harness.controllers)
    until(lambda: harness.controllers.see("ConfigMap/dependant") is not None)
    third = harness.apply(*four("4s"))

    assert (first.code, second.code, third.code) == (3, 3, 0)
    for name in NAMES:
        assert f"KubernetesObject here/{name} timed out: not within 4 s: {AT_FIRST[name]}. " in second.text
    assert uids(harness.controllers) == made


def test_a_failure_is_told_at_once_and_a_second_try_is_waited_for(harness: WaitHarness) -> None:
    harness.keep()
    manifest = kept(job("migrate"), waitFor={"rollout": True, "timeout": "240s"})
    applying = harness.begin_apply(manifest)
    applying.until_said("KubernetesObject here/migrate waiting: 0 of 1 completions\n")
    harness.controllers.fail("Job/migrate", "it did not work")
    code, text = applying.ended()
    harness.controllers.delete("Job/migrate")
    until(lambda: harness.controllers.see("Job/migrate") is not None)
    harness.controllers.complete("Job/migrate")
    until(lambda: harness.ready("migrate")[0] == "UpToDate")

    assert code == 1
    assert "KubernetesObject here/migrate failed: BackoffLimitExceeded: it did not work\n" in text


def _web() -> list[Any]:
    web = kept(service("web"), waitFor={"field": ADDRESS, "timeout": "240s"})
    return [web, kept(config_map("needs-it", address=value_of("web")))]


def test_a_process_that_cannot_look_says_so_and_goes_on_when_it_can(harness: WaitHarness) -> None:
    keeper = harness.keep()
    applying = harness.begin_apply(*_web())
    applying.until_said("KubernetesObject here/web waiting")
    harness.controllers.give_address("Service/web", "203.0.113.1")
    assert applying.ended().code == 0
    harness.set_fault(cut_off)
    harness.cut()
    harness.controllers.give_address("Service/web", "203.0.113.2")
    harness.setpoint("reconcile", "KubernetesObject/web", "-n", harness.namespace, "--timeout", "1s")
    until(lambda: harness.output("web")["state"] == "unknown")
    reason = harness.output("web")["reason"]
    harness.set_fault(no_fault)
    until(lambda: harness.controllers.see("ConfigMap/needs-it")["data"]["address"] == "203.0.113.2")
    until(lambda: harness.output("web")["state"] == "known")

    assert reason.startswith("the read failed: ")
    assert harness.writes("ConfigMap/needs-it") == ["PATCH", "PATCH"]
    assert keeper.bugs() == []
