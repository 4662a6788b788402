"""A DNS record follows the address of a load balancer: it is blocked without one, and never emptied."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.cluster.running.kubectl import install_kinds
from tests.cluster.waiting.manifests import ADDRESS, kubernetes_object, record, service, value_of
from tests.cluster.waiting.wait_harness import WaitHarness

FIRST, SECOND, THIRD = "203.0.113.1", "203.0.113.2", "203.0.113.3"
WAITS_FOR = f"waiting for {ADDRESS} of KubernetesObject here/web"


def _manifests() -> tuple[Any, Any]:
    return (
        kubernetes_object(record("home", value_of("web"))),
        kubernetes_object(service("web"), waitFor={"field": ADDRESS, "timeout": "2s"}),
    )


def _target(harness: WaitHarness) -> str | None:
    found = harness.controllers.get("DNSRecord/home")
    return None if found is None else found["spec"]["target"]


def test_a_record_is_blocked_until_the_address_is_known_and_follows_it_with_each_apply(harness: WaitHarness) -> None:
    controllers = harness.controllers

    code, text = harness.apply(*_manifests())
    assert code == 3, text
    assert f"KubernetesObject here/web timed out: not within 2 s: {ADDRESS} is not there yet" in text
    assert f"KubernetesObject here/home blocked: {WAITS_FOR}, unknown since " in text
    assert _target(harness) is None
    service_uid = controllers.get("Service/web")["metadata"]["uid"]

    _is_shown_as_blocked(harness)

    controllers.report_address("Service/web", FIRST)
    assert harness.apply(*_manifests()).code == 0
    assert _target(harness) == FIRST
    assert "home ready" in harness.setpoint("graph", "-n", harness.namespace).text

    controllers.report_address("Service/web", SECOND)
    assert harness.apply(*_manifests()).code == 0
    assert _target(harness) == SECOND

    controllers.report_address("Service/web", None)
    code, text = harness.apply(*_manifests())
    assert code == 3, text
    assert f"KubernetesObject here/home blocked: {WAITS_FOR}, unknown since " in text
    assert _target(harness) == SECOND

    controllers.report_address("Service/web", THIRD)
    assert harness.apply(*_manifests()).code == 0
    assert _target(harness) == THIRD
    assert harness.apply(*_manifests()).text == (
        "KubernetesObject here/web unchanged\nKubernetesObject here/home unchanged\nunchanged 2\n"
    )

    # One create, and two updates for changes of the address; the Service is written once.
    assert harness.writes("DNSRecord/home") == ["PATCH", "PATCH", "PATCH"]
    assert harness.writes("Service/web") == ["PATCH"]
    assert controllers.get("Service/web")["metadata"]["uid"] == service_uid


def _is_shown_as_blocked(harness: WaitHarness) -> None:
    shown = harness.setpoint("get", "-n", harness.namespace, "-o", "wide").text
    drawn = harness.setpoint("graph", "-n", harness.namespace).text

    assert WAITS_FOR in shown
    assert f"└── KubernetesObject here/home blocked: {WAITS_FOR}" in drawn
    assert f" ← {ADDRESS}" in " ".join(drawn.split())


def test_a_waiting_apply_creates_the_record_once_the_address_is_known(harness: WaitHarness) -> None:
    dependant, needed = _manifests()
    needed["spec"]["waitFor"]["timeout"] = "240s"
    running = harness.start_apply(dependant, needed)
    running.until_printed(
        f"KubernetesObject here/web waiting: {ADDRESS} is not there yet\n", f"here/home blocked: {WAITS_FOR}"
    )
    harness.controllers.report_address("Service/web", FIRST)
    code, text = running.result()

    assert code == 0
    assert text.endswith("KubernetesObject here/web created\nKubernetesObject here/home created\ncreated 2\n")
    assert _target(harness) == FIRST


# --- With a running controller ----------------------------------------------------------------------------------------


@pytest.fixture(params=["file", "cluster"])
def with_controller(
    request: pytest.FixtureRequest, dns: Access, namespace: str, tmp_path: Path
) -> Iterator[WaitHarness]:
    """A harness with a running controller: resources are in a SQLite store, or in the cluster."""
    is_in_cluster = request.param == "cluster"
    if is_in_cluster:
        install_kinds(dns, request.getfixturevalue("kubectl_program"))
    store = f"kubernetes?namespace={namespace}" if is_in_cluster else ""
    with WaitHarness(dns, namespace, tmp_path, store) as harness:
        harness.run_controller()
        yield harness
        # The controller has to remove its finalizers before it stops.
        harness.setpoint("delete", "KubernetesObject/home", "KubernetesObject/web", "-n", namespace)


def test_a_running_controller_updates_the_record_with_the_address(with_controller: WaitHarness) -> None:
    harness, controllers = with_controller, with_controller.controllers

    code, text = harness.apply(*_manifests())
    assert code == 3, text
    assert f"KubernetesObject here/home blocked: {WAITS_FOR}, unknown since " in text
    assert _target(harness) is None

    with _until_ready_after(harness):
        controllers.report_address("Service/web", FIRST)
        until(lambda: _target(harness) == FIRST)
    with _until_ready_after(harness):
        controllers.report_address("Service/web", SECOND)
        until(lambda: _target(harness) == SECOND)

    controllers.report_address("Service/web", None)
    until(lambda: harness.ready("home")[0] == "Blocked")
    until(lambda: harness.ready("web")[0] == "WaitTimedOut")
    assert (harness.output("web")["state"], _target(harness)) == ("unknown", SECOND)

    with _until_ready_after(harness):
        controllers.report_address("Service/web", THIRD)
        until(lambda: _target(harness) == THIRD)

    assert harness.writes("DNSRecord/home") == ["PATCH", "PATCH", "PATCH"]
    assert harness.writes("Service/web") == ["PATCH"]


@contextmanager
def _until_ready_after(harness: WaitHarness) -> Iterator[None]:
    """Returns from the block when both are ready."""
    yield
    until(lambda: {harness.ready("web")[0], harness.ready("home")[0]} == {"UpToDate"})
