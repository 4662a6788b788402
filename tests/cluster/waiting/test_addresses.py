"""A load balancer gets an address, and a DNS record follows it: blocked before, never rewritten with nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.cluster.running.kubectl import install_kinds
from tests.cluster.waiting.manifests import ADDRESS, kept, record, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness

FIRST, SECOND, THIRD = "203.0.113.1", "203.0.113.2", "203.0.113.3"
WAITS_FOR = f"waiting for {ADDRESS} of KubernetesObject here/web"


def _manifests() -> tuple[Any, Any]:
    return (
        kept(record("home", value_of("web"))),
        kept(service("web"), waitFor={"field": ADDRESS, "timeout": "2s"}),
    )


def _target(harness: WaitHarness) -> str | None:
    found = harness.controllers.see("DNSRecord/home")
    return None if found is None else found["spec"]["target"]


def test_a_record_is_blocked_until_there_is_an_address_and_follows_it_from_apply_to_apply(harness: WaitHarness) -> None:
    controllers = harness.controllers

    code, text = harness.apply(*_manifests())
    assert code == 3, text
    assert f"KubernetesObject here/web timed out: not within 2 s: {ADDRESS} is not there yet" in text
    assert f"KubernetesObject here/home blocked: {WAITS_FOR}, unknown since " in text
    assert _target(harness) is None
    service_uid = controllers.see("Service/web")["metadata"]["uid"]

    _is_shown_as_blocked(harness)

    controllers.give_address("Service/web", FIRST)
    assert harness.apply(*_manifests()).code == 0
    assert _target(harness) == FIRST
    assert "home ready" in harness.setpoint("graph", "-n", harness.namespace).text

    controllers.give_address("Service/web", SECOND)
    assert harness.apply(*_manifests()).code == 0
    assert _target(harness) == SECOND

    controllers.give_address("Service/web", None)
    code, text = harness.apply(*_manifests())
    assert code == 3, text
    assert f"KubernetesObject here/home blocked: {WAITS_FOR}, unknown since " in text
    assert _target(harness) == SECOND

    controllers.give_address("Service/web", THIRD)
    assert harness.apply(*_manifests()).code == 0
    assert _target(harness) == THIRD
    assert harness.apply(*_manifests()).text == (
        "KubernetesObject here/web unchanged\nKubernetesObject here/home unchanged\n"
    )

    # It is made, and then follows two changes of the address; the Service is written once.
    assert harness.writes("DNSRecord/home") == ["PATCH", "PATCH", "PATCH"]
    assert harness.writes("Service/web") == ["PATCH"]
    assert controllers.see("Service/web")["metadata"]["uid"] == service_uid


def _is_shown_as_blocked(harness: WaitHarness) -> None:
    shown = harness.setpoint("get", "-n", harness.namespace, "-o", "wide").text
    drawn = harness.setpoint("graph", "-n", harness.namespace).text

    assert WAITS_FOR in shown
    assert f"└── KubernetesObject here/home blocked: {WAITS_FOR}" in drawn
    assert f" ← {ADDRESS}" in " ".join(drawn.split())


def test_an_apply_that_waits_makes_the_record_as_soon_as_there_is_an_address(harness: WaitHarness) -> None:
    dependant, needed = _manifests()
    needed["spec"]["waitFor"]["timeout"] = "240s"
    applying = harness.begin_apply(dependant, needed)
    applying.until_said(
        f"KubernetesObject here/web waiting: {ADDRESS} is not there yet\n", f"here/home blocked: {WAITS_FOR}"
    )
    harness.controllers.give_address("Service/web", FIRST)
    code, text = applying.ended()

    assert code == 0
    assert text.endswith("KubernetesObject here/web created\nKubernetesObject here/home created\n")
    assert _target(harness) == FIRST


# --- With a process that goes on for ever -----------------------------------------------------------------------------


@pytest.fixture(params=["file", "cluster"])
def kept_stage(request: pytest.FixtureRequest, dns: Access, namespace: str, tmp_path: Path) -> Iterator[WaitHarness]:
    """A stage with `setpoint run` at work: resources are in a file, or in the cluster itself."""
    is_in_cluster = request.param == "cluster"
    if is_in_cluster:
        install_kinds(dns, request.getfixturevalue("kubectl_program"))
    store = f"kubernetes?namespace={namespace}" if is_in_cluster else ""
    with WaitHarness(dns, namespace, tmp_path, store) as harness:
        harness.keep()
        yield harness
        # No controller would handle them later, and the namespace could not be deleted.
        harness.setpoint("delete", "KubernetesObject/home", "KubernetesObject/web", "-n", namespace)


def test_a_record_follows_its_address_while_a_process_looks_after_it(kept_stage: WaitHarness) -> None:
    harness, controllers = kept_stage, kept_stage.controllers

    code, text = harness.apply(*_manifests())
    assert code == 3, text
    assert f"KubernetesObject here/home blocked: {WAITS_FOR}, unknown since " in text
    assert _target(harness) is None

    with _at_rest(harness):
        controllers.give_address("Service/web", FIRST)
        until(lambda: _target(harness) == FIRST)
    with _at_rest(harness):
        controllers.give_address("Service/web", SECOND)
        until(lambda: _target(harness) == SECOND)

    controllers.give_address("Service/web", None)
    until(lambda: harness.ready("home")[0] == "Blocked")
    until(lambda: harness.ready("web")[0] == "WaitTimedOut")
    assert (harness.output("web")["state"], _target(harness)) == ("unknown", SECOND)

    with _at_rest(harness):
        controllers.give_address("Service/web", THIRD)
        until(lambda: _target(harness) == THIRD)

    assert harness.writes("DNSRecord/home") == ["PATCH", "PATCH", "PATCH"]
    assert harness.writes("Service/web") == ["PATCH"]


@contextmanager
def _at_rest(harness: WaitHarness) -> Iterator[None]:
    """Both are ready when the block is left."""
    yield
    until(lambda: {harness.ready("web")[0], harness.ready("home")[0]} == {"UpToDate"})
