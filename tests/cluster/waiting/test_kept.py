"""Waits while `setpoint run` is at work: other commands hand over to it, and it goes on for ever."""

from typing import Any

from tests.cluster.patience import until
from tests.cluster.running.proxy import blue_sky, cut_off
from tests.cluster.waiting.four_waits import AT_FIRST, NAMES, four, play, uids
from tests.cluster.waiting.manifests import ADDRESS, config_map, job, kept, service, value_of
from tests.cluster.waiting.stage import Stage


def test_an_apply_that_hands_over_waits_until_all_has_come(stage: Stage) -> None:
    stage.keep()
    applying = stage.begin_apply(*four())
    applying.until_said(*(f"KubernetesObject here/{name} waiting: {why}\n" for name, why in AT_FIRST.items()))
    play(stage.player)
    code, text = applying.ended()

    assert code == 0, text
    for name in NAMES:
        assert f"KubernetesObject here/{name} created\n" in text
    assert stage.player.see("ConfigMap/dependant") is not None
    assert len(stage.writes()) == 5


def test_an_apply_after_a_timeout_waits_again_and_goes_on(stage: Stage) -> None:
    stage.keep()
    first = stage.apply(*four("4s"))
    made = uids(stage.player)
    applying = stage.begin_apply(*four("4s"))
    applying.until_said(*(f"KubernetesObject here/{name} waiting: {why}\n" for name, why in AT_FIRST.items()))
    second = applying.ended()
    play(stage.player)
    until(lambda: stage.player.see("ConfigMap/dependant") is not None)
    third = stage.apply(*four("4s"))

    assert (first.code, second.code, third.code) == (3, 3, 0)
    for name in NAMES:
        assert f"KubernetesObject here/{name} timed out: not within 4 s: {AT_FIRST[name]}. " in second.text
    assert uids(stage.player) == made


def test_a_failure_is_told_at_once_and_a_second_try_is_waited_for(stage: Stage) -> None:
    stage.keep()
    manifest = kept(job("migrate"), waitFor={"rollout": True, "timeout": "60s"})
    applying = stage.begin_apply(manifest)
    applying.until_said("KubernetesObject here/migrate waiting: 0 of 1 completions\n")
    stage.player.fail("Job/migrate", "it did not work")
    code, text = applying.ended()
    stage.player.delete("Job/migrate")
    until(lambda: stage.player.see("Job/migrate") is not None)
    stage.player.complete("Job/migrate")
    until(lambda: stage.ready("migrate")[0] == "UpToDate")

    assert code == 1
    assert "KubernetesObject here/migrate failed: BackoffLimitExceeded: it did not work\n" in text


def _web() -> list[Any]:
    web = kept(service("web"), waitFor={"field": ADDRESS, "timeout": "60s"})
    return [web, kept(config_map("needs-it", address=value_of("web")))]


def test_a_process_that_cannot_look_says_so_and_goes_on_when_it_can(stage: Stage) -> None:
    keeper = stage.keep()
    applying = stage.begin_apply(*_web())
    applying.until_said("KubernetesObject here/web waiting")
    stage.player.give_address("Service/web", "203.0.113.1")
    assert applying.ended().code == 0
    stage.set_weather(cut_off)
    stage.cut()
    stage.player.give_address("Service/web", "203.0.113.2")
    stage.setpoint("reconcile", "KubernetesObject/web", "-n", stage.namespace, "--timeout", "1s")
    until(lambda: stage.output("web")["state"] == "unknown")
    reason = stage.output("web")["reason"]
    stage.set_weather(blue_sky)
    until(lambda: stage.player.see("ConfigMap/needs-it")["data"]["address"] == "203.0.113.2")
    until(lambda: stage.output("web")["state"] == "known")

    assert reason.startswith("the read failed: ")
    assert stage.writes("ConfigMap/needs-it") == ["PATCH", "PATCH"]
    assert keeper.bugs() == []
