"""The order of objects: definitions, dependencies with and without values, cycles, and concurrent waits."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.polling import until
from tests.cluster.waiting.four_waits import four_objects, report_done, uids, until_all_wait
from tests.cluster.waiting.manifests import (
    ADDRESS,
    config_map,
    definition,
    kubernetes_object,
    record,
    service,
    value_of,
)
from tests.cluster.waiting.wait_harness import WaitHarness


@pytest.fixture
def group(harness: WaitHarness) -> Iterator[str]:
    """The name of an API group of the test's own."""
    name = f"g{secrets.token_hex(4)}.example.com"
    yield name
    harness.access.call("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dnsrecords.{name}")


def _record_of(group: str, **more: Any) -> Any:
    return kubernetes_object({**record("home"), "apiVersion": f"{group}/v1"}, **more)


def _written(harness: WaitHarness) -> list[str]:
    """The names of the written objects, in order."""
    requests = (
        one for one in harness.requests() if one.method == "PATCH" and "dryRun" not in one.query and one.status < 300
    )
    return [one.path.rpartition("/")[2] for one in requests]


def test_one_apply_creates_a_definition_and_an_object_of_it(harness: WaitHarness, group: str) -> None:
    code, text = harness.apply(_record_of(group), kubernetes_object(definition(group)))

    assert code == 0, text
    assert _written(harness) == [f"dnsrecords.{group}", "home"]


def test_a_definition_may_be_waited_for_and_is_then_served(harness: WaitHarness, group: str) -> None:
    established = kubernetes_object(definition(group), waitFor={"condition": "Established", "timeout": "240s"})
    after = f"KubernetesObject/dnsrecords.{group}"
    code, text = harness.apply(_record_of(group, after=after), established)

    assert code == 0, text
    assert _written(harness) == [f"dnsrecords.{group}", "home"]


def test_dependants_are_written_after_their_dependencies(harness: WaitHarness) -> None:
    code, text = harness.apply(
        kubernetes_object(config_map("first"), after="KubernetesObject/second"),
        kubernetes_object(config_map("second"), after="KubernetesObject/third, KubernetesObject/fourth"),
        kubernetes_object(config_map("third"), after="KubernetesObject/fourth"),
        kubernetes_object(config_map("fourth")),
    )

    assert code == 0, text
    assert _written(harness) == ["fourth", "third", "second", "first"]


def test_a_cycle_is_named_and_nothing_of_it_is_written(harness: WaitHarness) -> None:
    manifests = (
        kubernetes_object(config_map("a"), after="KubernetesObject/b"),
        kubernetes_object(service("b"), after="KubernetesObject/c", waitFor={"field": ADDRESS}),
        kubernetes_object(config_map("c", address=value_of("b"))),
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
    code, text = harness.apply(
        kubernetes_object(service("web"), **wait), kubernetes_object(config_map("needs-it", address=value_of("web")))
    )

    assert code == 1
    assert f"add waitFor.field to KubernetesObject here/web, such as waitFor: {{field: {ADDRESS}}}" in text
    assert harness.controllers.get("ConfigMap/needs-it") is None


def test_a_plan_says_what_is_blocked_and_writes_nothing(harness: WaitHarness) -> None:
    web = kubernetes_object(service("web"), waitFor={"field": ADDRESS, "timeout": "2s"})
    harness.apply(web)
    code, text = harness.plan(web, kubernetes_object(config_map("needs-it", address=value_of("web"))))

    assert code == 2
    assert f"KubernetesObject here/needs-it\nblocked: waiting for {ADDRESS} of KubernetesObject here/web" in text
    assert harness.writes() == ["PATCH"]


def test_a_reference_to_an_undeclared_resource_waits(harness: WaitHarness) -> None:
    code, text = harness.apply(kubernetes_object(config_map("needs-it", address=value_of("web"))))

    assert code == 3
    assert "KubernetesObject here/needs-it waiting: reference KubernetesObject here/web is not found\n" in text


def test_a_value_outside_of_the_waited_field_blocks(harness: WaitHarness) -> None:
    web = kubernetes_object(service("web"), waitFor={"field": "spec.clusterIP"})
    code, text = harness.apply(web, kubernetes_object(config_map("needs-it", address=value_of("web"))))

    assert code == 3
    assert f"waiting for {ADDRESS} of KubernetesObject here/web: it is not in the value that" in text
    assert harness.output("web")["state"] == "known"


def test_a_chain_of_blocked_resources_names_the_first_cause(harness: WaitHarness) -> None:
    code, text = harness.apply(
        kubernetes_object(service("web"), waitFor={"field": ADDRESS, "timeout": "2s"}),
        kubernetes_object(record("home", value_of("web")), waitFor={"field": "status.zone", "timeout": "2s"}),
        kubernetes_object(config_map("last", zone=value_of("home", "status.zone"))),
    )

    behind = f"waiting for {ADDRESS} of KubernetesObject here/web, unknown since "
    assert code == 3
    assert "KubernetesObject here/last blocked: waiting for status.zone of KubernetesObject here/home: " in text
    (last,) = [line for line in text.splitlines() if line.startswith("KubernetesObject here/last")][-1:]
    assert behind in last


def test_values_are_inserted_into_text(harness: WaitHarness) -> None:
    named = "${ref:KubernetesObject/web:" + ADDRESS + "}"
    urls = kubernetes_object(config_map("urls", url=f"http://{named}/?from={named}", literal="$${ref:a}"))
    running = harness.start_apply(kubernetes_object(service("web"), waitFor={"field": ADDRESS}), urls)
    running.until_printed("KubernetesObject here/web waiting", "KubernetesObject here/urls blocked")
    harness.controllers.report_address("Service/web", "203.0.113.1")
    code, text = running.result()

    assert code == 0, text
    made = harness.controllers.get("ConfigMap/urls")["data"]
    assert made == {"url": "http://203.0.113.1/?from=203.0.113.1", "literal": "${ref:a}"}


def test_independent_objects_are_waited_for_concurrently(harness: WaitHarness) -> None:
    running = harness.start_apply(*four_objects())
    # None of them ends before the last of them has begun.
    until_all_wait(running)

    assert " created\n" not in running.text
    report_done(harness.controllers)
    assert running.result().code == 0


def test_a_wait_that_was_killed_is_continued_by_the_next_apply(harness: WaitHarness) -> None:
    running = harness.start_apply(*four_objects())
    until_all_wait(running)
    running.child.kill()
    made = uids(harness.controllers)
    begun = harness.status("by-rollout")["setpoint"]["wait"]["since"]
    running = harness.start_apply(*four_objects())
    until(lambda: harness.ready("by-rollout")[0] == "Waiting")
    since = harness.status("by-rollout")["setpoint"]["wait"]["since"]
    report_done(harness.controllers)
    code, text = running.result()

    assert code == 0, text
    assert "KubernetesObject here/dependant created\n" in text
    assert uids(harness.controllers) == made
    # The timeout counts from the first apply.
    assert since == begun
    assert len(harness.writes()) == 5
