"""What a KubernetesObject offers to others, rule by rule: null, unknown with its reason, or known."""

from typing import Any

import pytest

from tests.cluster.polling import until
from tests.cluster.running.proxy import cut_off, no_fault
from tests.cluster.waiting.fake_controllers import condition
from tests.cluster.waiting.manifests import ADDRESS, config_map, deployment, kept, record, service, value_of
from tests.cluster.waiting.wait_harness import Said, WaitHarness

ONE = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}}
TWO = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.2"}]}}}
VOLATILE = ("observedGeneration", "resourceVersion", "managedFields", "lastTransitionTime", "lastUpdateTime")

# One of each sort, with what it waits for.
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
def told(common: WaitHarness) -> Said:
    """Everything is made and waited for in vain; then controllers report, and it is applied once more."""
    manifests = [kept(tree, **_wait(wait)) for tree, wait in WAITING.values()]
    first = common.apply(*manifests)
    assert first.code == 3, first.text
    ready = condition("Ready", "True", reason="Ok", message="")
    common.controllers.report("DNSRecord/condition", phase="Active", conditions=[ready])
    common.controllers.report("DNSRecord/field-value", phase="Active")
    common.controllers.bring_up("Deployment/rollout", 3)
    common.controllers.report("Service/there", loadBalancer=ONE["status"]["loadBalancer"], conditions=[ready])
    ingress = [{"ip": "203.0.113.1"}, {"ip": "203.0.113.2", "hostname": "b.example.com"}]
    common.controllers.report("Service/one-of-two", loadBalancer={"ingress": ingress})
    heard = [{**ready, "observedGeneration": 1, "lastUpdateTime": "2026-01-01T00:00:00Z"}]
    common.controllers.report("DNSRecord/all", phase="Active", observedGeneration=1, conditions=heard)
    return common.apply(*manifests)


def _wait(wait: Any) -> dict[str, Any]:
    return {} if wait is None else {"waitFor": {**wait, "timeout": "2s"}}


def test_null_without_a_wait(common: WaitHarness, told: Said) -> None:
    assert common.output("no-wait") == {"state": "null"}


@pytest.mark.parametrize("name", ["condition", "field-value", "rollout"])
def test_null_with_a_wait_other_than_for_a_field(common: WaitHarness, told: Said, name: str) -> None:
    assert f"KubernetesObject here/{name} unchanged\n" in told.text
    assert common.output(name) == {"state": "null"}


def test_known_and_cut_to_its_path_once_the_field_is_there(common: WaitHarness, told: Said) -> None:
    assert common.output("there") == {"state": "known", "value": ONE}


def test_known_in_its_place_of_a_list(common: WaitHarness, told: Said) -> None:
    value = {"status": {"loadBalancer": {"ingress": [None, {"hostname": "b.example.com"}]}}}

    assert common.output("one-of-two") == {"state": "known", "value": value}


def test_known_without_volatile_fields(common: WaitHarness, told: Said) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Ok", "message": ""}

    assert common.output("all") == {"state": "known", "value": {"status": {"phase": "Active", "conditions": [ready]}}}


@pytest.mark.parametrize("member", VOLATILE)
def test_volatile_fields_cannot_be_waited_for_as_a_value(harness: WaitHarness, member: str) -> None:
    code, text = harness.apply(kept(record("volatile"), waitFor={"field": f"status.{member}"}))

    assert code == 1
    assert f"{member} changes without a change of state" in text
    assert harness.controllers.see("DNSRecord/volatile") is None


def test_unknown_after_its_time_says_what_was_missing(common: WaitHarness, told: Said) -> None:
    offered = common.output("not-there")

    assert told.code == 3
    assert (offered["state"], "last" in offered) == ("unknown", False)
    assert offered["reason"].startswith(f"the wait timed out: not within 2 s: {ADDRESS} is not there yet")


def test_unknown_after_its_time_without_any_status(common: WaitHarness, told: Said) -> None:
    missing = "status.phase is not there yet: the object has no status"

    assert common.output("no-status")["reason"].startswith(f"the wait timed out: not within 2 s: {missing}")


def test_get_shows_the_three_states(common: WaitHarness, told: Said) -> None:
    code, text = common.setpoint("get", "-n", common.namespace)
    words = {line.split()[2]: line.split(None, 6)[6:] for line in text.splitlines()[1:]}

    assert code == 0
    assert words["no-wait"] == ["null"]
    assert words["not-there"] == ["unknown"]
    assert words["there"] == ['known: "203.0.113.1"']


def test_unknown_while_it_is_waited_for(harness: WaitHarness) -> None:
    applying = harness.begin_apply(kept(service("web"), waitFor={"field": ADDRESS}))
    applying.until_said("KubernetesObject here/web waiting")
    offered = harness.output("web")

    assert (offered["state"], offered["reason"]) == ("unknown", f"{ADDRESS} is not there yet")


# --- One life of a value ---------------------------------------------------------------------------------------------


@pytest.fixture
def known(harness: WaitHarness) -> WaitHarness:
    """A stage with a value that is known, and one who needs it."""
    applying = harness.begin_apply(*_web())
    applying.until_said("KubernetesObject here/web waiting")
    harness.controllers.give_address("Service/web", "203.0.113.1")
    assert applying.ended().code == 0
    return harness


def _web(timeout: str = "240s") -> tuple[Any, Any]:
    web = kept(service("web"), waitFor={"field": ADDRESS, "timeout": timeout})
    return web, kept(config_map("needs-it", address=value_of("web")))


def _address(harness: WaitHarness) -> str:
    found = harness.controllers.see("ConfigMap/needs-it")["data"]["address"]
    assert isinstance(found, str)
    return found


def test_a_value_that_vanishes_is_unknown_and_disappeared_and_known_when_it_is_back(known: WaitHarness) -> None:
    known.controllers.give_address("Service/web", None)
    applying = known.begin_apply(*_web())
    applying.until_said("KubernetesObject here/web waiting", "KubernetesObject here/needs-it blocked")
    offered = known.output("web")
    after = _address(known)
    known.controllers.give_address("Service/web", "203.0.113.2")
    back = applying.ended()

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


def test_a_value_that_is_gone_for_longer_than_its_time_keeps_what_it_was(known: WaitHarness) -> None:
    known.controllers.give_address("Service/web", None)
    gone = known.apply(*_web("2s"))
    offered = known.output("web")

    assert gone.code == 3
    assert (offered["state"], offered["last"]) == ("unknown", ONE)
    assert offered["reason"] == "disappeared"
    assert _address(known) == "203.0.113.1"


def test_what_is_offered_outlives_the_process(known: WaitHarness) -> None:
    keeper = known.keep()
    assert known.apply(*_web("2s")).code == 0
    known.controllers.give_address("Service/web", None)
    until(lambda: known.ready("web")[0] == "WaitTimedOut")
    unknown = known.output("web")
    keeper.kill()
    still, looks = known.output("web"), known.looks_at("Service/web")
    keeper.start()
    until(lambda: known.looks_at("Service/web") > looks)

    assert (unknown["state"], unknown["last"]) == ("unknown", ONE)
    assert still == unknown
    assert known.output("web") == unknown
