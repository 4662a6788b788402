"""Outputs of KubernetesObjects: null, unknown with a reason, or known."""

from typing import Any

import pytest

from tests.cluster.polling import until
from tests.cluster.running.proxy import cut_off, no_fault
from tests.cluster.waiting.fake_controllers import condition
from tests.cluster.waiting.manifests import (
    ADDRESS,
    config_map,
    deployment,
    kubernetes_object,
    record,
    service,
    value_of,
)
from tests.cluster.waiting.wait_harness import CommandResult, WaitHarness

ONE = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}}
TWO = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.2"}]}}}
VOLATILE = ("observedGeneration", "resourceVersion", "managedFields", "lastTransitionTime", "lastUpdateTime")

# One object for each rule, with its wait.
WAITING: dict[str, tuple[Any, Any]] = {
    "no-wait": (service("no-wait"), None),
    "condition": (record("condition"), {"condition": "Ready"}),
    "field-value": (record("field-value"), {"fieldValue": {"status.phase": "Active"}}),
    "rollout": (deployment("rollout"), {"rollout": True}),
    "there": (service("there"), {"field": ADDRESS}),
    "one-of-two": (service("one-of-two"), {"field": "status.loadBalancer.ingress[1].hostname"}),
    "all": (record("all"), {"field": "status"}),
    "not-there": (service("not-there"), {"field": ADDRESS}),
    "no-status": (record("no-status"), {"field": "status.phase"}),
}


@pytest.fixture(scope="module")
def result(common: WaitHarness) -> CommandResult:
    """The second apply: in the first all waits timed out, and then the controllers reported."""
    manifests = [kubernetes_object(tree, **_wait(wait)) for tree, wait in WAITING.values()]
    first = common.apply(*manifests)
    assert first.code == 3, first.text
    ready = condition("Ready", "True", reason="Ok", message="")
    common.controllers.patch_status("DNSRecord/condition", phase="Active", conditions=[ready])
    common.controllers.patch_status("DNSRecord/field-value", phase="Active")
    common.controllers.report_replicas("Deployment/rollout", 3)
    common.controllers.patch_status("Service/there", loadBalancer=ONE["status"]["loadBalancer"], conditions=[ready])
    ingress = [{"ip": "203.0.113.1"}, {"ip": "203.0.113.2", "hostname": "b.example.com"}]
    common.controllers.patch_status("Service/one-of-two", loadBalancer={"ingress": ingress})
    flapping = [{**ready, "observedGeneration": 1, "lastUpdateTime": "2026-01-01T00:00:00Z"}]
    common.controllers.patch_status("DNSRecord/all", phase="Active", observedGeneration=1, conditions=flapping)
    return common.apply(*manifests)


def _wait(wait: Any) -> dict[str, Any]:
    return {} if wait is None else {"waitFor": {**wait, "timeout": "2s"}}


def test_null_without_a_wait(common: WaitHarness, result: CommandResult) -> None:
    assert common.output("no-wait") == {"state": "null"}


@pytest.mark.parametrize("name", ["condition", "field-value", "rollout"])
def test_null_with_a_wait_other_than_for_a_field(common: WaitHarness, result: CommandResult, name: str) -> None:
    assert f"KubernetesObject here/{name} unchanged\n" in result.text
    assert common.output(name) == {"state": "null"}


def test_known_with_the_waited_field_alone(common: WaitHarness, result: CommandResult) -> None:
    assert common.output("there") == {"state": "known", "value": ONE}


def test_known_at_its_index_of_a_list(common: WaitHarness, result: CommandResult) -> None:
    value = {"status": {"loadBalancer": {"ingress": [None, {"hostname": "b.example.com"}]}}}

    assert common.output("one-of-two") == {"state": "known", "value": value}


def test_known_without_volatile_fields(common: WaitHarness, result: CommandResult) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Ok", "message": ""}

    assert common.output("all") == {"state": "known", "value": {"status": {"phase": "Active", "conditions": [ready]}}}


@pytest.mark.parametrize("member", VOLATILE)
def test_volatile_fields_cannot_be_waited_for_as_a_value(harness: WaitHarness, member: str) -> None:
    code, text = harness.apply(kubernetes_object(record("volatile"), waitFor={"field": f"status.{member}"}))

    assert code == 1
    assert f"{member} changes without a change of state" in text
    assert harness.controllers.get("DNSRecord/volatile") is None


def test_unknown_after_a_timeout_with_what_was_missing(common: WaitHarness, result: CommandResult) -> None:
    offered = common.output("not-there")

    assert result.code == 3
    assert (offered["state"], "last" in offered) == ("unknown", False)
    assert offered["reason"].startswith(f"the wait timed out: not within 2 s: {ADDRESS} is not there yet")


def test_unknown_after_a_timeout_without_a_status(common: WaitHarness, result: CommandResult) -> None:
    missing = "status.phase is not there yet: the object has no status"

    assert common.output("no-status")["reason"].startswith(f"the wait timed out: not within 2 s: {missing}")


def test_get_shows_the_three_states(common: WaitHarness, result: CommandResult) -> None:
    code, text = common.setpoint("get", "-n", common.namespace)
    words = {line.split()[2]: line.split(None, 6)[6:] for line in text.splitlines()[1:]}

    assert code == 0
    assert words["no-wait"] == ["null"]
    assert words["not-there"] == ["unknown"]
    assert words["there"] == ['known: "203.0.113.1"']


def test_unknown_during_the_wait(harness: WaitHarness) -> None:
    running = harness.start_apply(kubernetes_object(service("web"), waitFor={"field": ADDRESS}))
    running.until_printed("KubernetesObject here/web waiting")
    offered = harness.output("web")

    assert (offered["state"], offered["reason"]) == ("unknown", f"{ADDRESS} is not there yet")


# --- Changes of a value -----------------------------------------------------------------------------------------------


@pytest.fixture
def known(harness: WaitHarness) -> WaitHarness:
    """A harness with a known output and its dependant."""
    running = harness.start_apply(*_web())
    running.until_printed("KubernetesObject here/web waiting")
    harness.controllers.report_address("Service/web", "203.0.113.1")
    assert running.result().code == 0
    return harness


def _web(timeout: str = "240s") -> tuple[Any, Any]:
    web = kubernetes_object(service("web"), waitFor={"field": ADDRESS, "timeout": timeout})
    return web, kubernetes_object(config_map("needs-it", address=value_of("web")))


def _address(harness: WaitHarness) -> str:
    found = harness.controllers.get("ConfigMap/needs-it")["data"]["address"]
    assert isinstance(found, str)
    return found


def test_a_value_that_disappears_is_unknown_until_it_is_back(known: WaitHarness) -> None:
    known.controllers.report_address("Service/web", None)
    running = known.start_apply(*_web())
    running.until_printed("KubernetesObject here/web waiting", "KubernetesObject here/needs-it blocked")
    offered = known.output("web")
    after = _address(known)
    known.controllers.report_address("Service/web", "203.0.113.2")
    back = running.result()

    assert (offered["state"], offered["reason"], offered["last"]) == ("unknown", "disappeared", ONE)
    assert after == "203.0.113.1"
    assert (back.code, known.output("web")) == (0, {"state": "known", "value": TWO})
    assert _address(known) == "203.0.113.2"


def test_a_value_that_cannot_be_read_is_unknown_and_its_dependant_is_left_alone(known: WaitHarness) -> None:
    known.set_fault(cut_off)
    code, text = known.apply(*_web(), timeout="3s")
    offered = known.output("web")
    known.set_fault(no_fault)
    writes = len(known.writes())
    back = known.apply(*_web())

    assert code == 3
    assert "KubernetesObject here/web retrying" in text
    assert (offered["state"], offered["last"]) == ("unknown", ONE)
    assert offered["reason"].startswith("the read failed: ")
    assert (back.code, known.output("web")) == (0, {"state": "known", "value": ONE})
    assert known.writes()[writes:] == []


def test_a_value_that_is_gone_after_the_timeout_keeps_its_last_value(known: WaitHarness) -> None:
    known.controllers.report_address("Service/web", None)
    gone = known.apply(*_web("2s"))
    offered = known.output("web")

    assert gone.code == 3
    assert (offered["state"], offered["last"]) == ("unknown", ONE)
    assert offered["reason"] == "disappeared"
    assert _address(known) == "203.0.113.1"


def test_an_output_survives_a_restart(known: WaitHarness) -> None:
    controller = known.run_controller()
    assert known.apply(*_web("2s")).code == 0
    known.controllers.report_address("Service/web", None)
    until(lambda: known.ready("web")[0] == "WaitTimedOut")
    unknown = known.output("web")
    controller.kill()
    still, reads = known.output("web"), known.reads_of("Service/web")
    controller.start()
    until(lambda: known.reads_of("Service/web") > reads)

    assert (unknown["state"], unknown["last"]) == ("unknown", ONE)
    assert still == unknown
    assert known.output("web") == unknown
