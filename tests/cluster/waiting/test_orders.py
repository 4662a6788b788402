"""What comes after what: definitions and their objects, orders without values, cycles, and what runs side by side."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.polling import until
from tests.cluster.waiting.four_waits import four, play, uids, until_all_wait
from tests.cluster.waiting.manifests import ADDRESS, config_map, definition, kept, record, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness


@pytest.fixture
def group(harness: WaitHarness) -> Iterator[str]:
    """The name of an API group that is this test's own."""
    name = f"g{secrets.token_hex(4)}.example.com"
    yield name
    harness.access.call("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dnsrecords.{name}")


def _record_of(group: str, **more: Any) -> Any:
    return kept({**record("home"), "apiVersion": f"{group}/v1"}, **more)


def _written(harness: WaitHarness) -> list[str]:
    """The names of what was written, in the order in which it was."""
    asked = (one for one in harness.asked() if one.method == "PATCH" and "dryRun" not in one.query and one.status < 300)
    return [one.path.rpartition("/")[2] for one in asked]


def test_a_definition_and_an_object_of_it_are_made_by_one_apply(harness: WaitHarness, group: str) -> None:
    code, text = harness.apply(_record_of(group), kept(definition(group)))

    assert code == 0, text
    assert _written(harness) == [f"dnsrecords.{group}", "home"]


def test_a_definition_may_be_waited_for_and_is_then_served(harness: WaitHarness, group: str) -> None:
    established = kept(definition(group), waitFor={"condition": "Established", "timeout": "240s"})
    after = f"KubernetesObject/dnsrecords.{group}"
    code, text = harness.apply(_record_of(group, after=after), established)

    assert code == 0, text
    assert _written(harness) == [f"dnsrecords.{group}", "home"]


def test_what_depends_on_others_comes_after_them(harness: WaitHarness) -> None:
    code, text = harness.apply(
        kept(config_map("first"), after="KubernetesObject/second"),
        kept(config_map("second"), after="KubernetesObject/third, KubernetesObject/fourth"),
        kept(config_map("third"), after="KubernetesObject/fourth"),
        kept(config_map("fourth")),
    )

    assert code == 0, text
    assert _written(harness) == ["fourth", "third", "second", "first"]


def test_a_cycle_is_named_and_nothing_of_it_is_written(harness: WaitHarness) -> None:
    manifests = (
        kept(config_map("a"), after="KubernetesObject/b"),
        kept(service("b"), after="KubernetesObject/c", waitFor={"field": ADDRESS}),
        kept(config_map("c", address=value_of("b"))),
    )
    code, text = harness.apply(*manifests)
    drawn = harness.setpoint("graph", "-f", str(harness.folder / "manifests-1.yaml"))

    cycle = "KubernetesObject here/b needs KubernetesObject here/c needs KubernetesObject here/b"
    assert (code, drawn.code) == (1, 1)
    assert cycle in text
    assert cycle in drawn.text
    assert _written(harness) == []


OTHER_WAIT = {"waitFor": {"fieldValue": {"spec.type": "LoadBalancer"}}}


@pytest.mark.parametrize("wait", [{}, OTHER_WAIT], ids=["none", "other"])
def test_a_value_without_a_wait_is_an_error_that_names_the_missing_wait(harness: WaitHarness, wait: Any) -> None:
    code, text = harness.apply(kept(service("web"), **wait), kept(config_map("needs-it", address=value_of("web"))))

    assert code == 1
    assert f"add waitFor.field to KubernetesObject here/web, such as waitFor: {{field: {ADDRESS}}}" in text
    assert harness.controllers.see("ConfigMap/needs-it") is None


def test_a_plan_says_what_is_blocked_and_writes_nothing(harness: WaitHarness) -> None:
    web = kept(service("web"), waitFor={"field": ADDRESS, "timeout": "2s"})
    harness.apply(web)
    code, text = harness.plan(web, kept(config_map("needs-it", address=value_of("web"))))

    assert code == 2
    assert f"KubernetesObject here/needs-it\nblocked: waiting for {ADDRESS} of KubernetesObject here/web" in text
    assert harness.writes() == ["PATCH"]


def test_what_needs_something_that_is_not_declared_waits_for_it(harness: WaitHarness) -> None:
    code, text = harness.apply(kept(config_map("needs-it", address=value_of("web"))))

    assert code == 3
    assert "KubernetesObject here/needs-it waiting: reference KubernetesObject here/web is not found\n" in text


def test_a_value_outside_of_what_is_waited_for_blocks_and_says_so(harness: WaitHarness) -> None:
    web = kept(service("web"), waitFor={"field": "spec.clusterIP"})
    code, text = harness.apply(web, kept(config_map("needs-it", address=value_of("web"))))

    assert code == 3
    assert f"waiting for {ADDRESS} of KubernetesObject here/web: it is not in the value that" in text
    assert harness.output("web")["state"] == "known"


def test_a_chain_says_what_is_behind_it(harness: WaitHarness) -> None:
    code, text = harness.apply(
        kept(service("web"), waitFor={"field": ADDRESS, "timeout": "2s"}),
        kept(record("home", value_of("web")), waitFor={"field": "status.zone", "timeout": "2s"}),
        kept(config_map("last", zone=value_of("home", "status.zone"))),
    )

    behind = f"waiting for {ADDRESS} of KubernetesObject here/web, unknown since "
    assert code == 3
    assert "KubernetesObject here/last blocked: waiting for status.zone of KubernetesObject here/home: " in text
    (last,) = [line for line in text.splitlines() if line.startswith("KubernetesObject here/last")][-1:]
    assert behind in last


def test_values_go_into_texts_as_well(harness: WaitHarness) -> None:
    named = "${ref:KubernetesObject/web:" + ADDRESS + "}"
    urls = kept(config_map("urls", url=f"http://{named}/?from={named}", literal="$${ref:a}"))
    applying = harness.begin_apply(kept(service("web"), waitFor={"field": ADDRESS}), urls)
    applying.until_said("KubernetesObject here/web waiting", "KubernetesObject here/urls blocked")
    harness.controllers.give_address("Service/web", "203.0.113.1")
    code, text = applying.ended()

    assert code == 0, text
    made = harness.controllers.see("ConfigMap/urls")["data"]
    assert made == {"url": "http://203.0.113.1/?from=203.0.113.1", "literal": "${ref:a}"}


def test_what_does_not_need_each_other_is_waited_for_side_by_side(harness: WaitHarness) -> None:
    applying = harness.begin_apply(*four())
    # None of them is done before the last of them has begun.
    until_all_wait(applying)

    assert " created\n" not in applying.text
    play(harness.controllers)
    assert applying.ended().code == 0


def test_an_apply_that_is_killed_in_the_middle_of_a_wait_is_gone_on_with(harness: WaitHarness) -> None:
    applying = harness.begin_apply(*four())
    until_all_wait(applying)
    applying.child.kill()
    made = uids(harness.controllers)
    begun = harness.status("by-rollout")["setpoint"]["wait"]["since"]
    applying = harness.begin_apply(*four())
    until(lambda: harness.ready("by-rollout")[0] == "Waiting")
    since = harness.status("by-rollout")["setpoint"]["wait"]["since"]
    play(harness.controllers)
    code, text = applying.ended()

    assert code == 0, text
    assert "KubernetesObject here/dependant created\n" in text
    assert uids(harness.controllers) == made
    # Of its time, it has used what it had used before.
    assert since == begun
    assert len(harness.writes()) == 5
