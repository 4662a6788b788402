"""One object for each type of wait: for a field, for values of fields, for a condition, for a rollout."""

from typing import Any, Final

from tests.cluster.waiting.fake_controllers import FakeControllers, condition
from tests.cluster.waiting.manifests import ADDRESS, config_map, deployment, kubernetes_object, record, service
from tests.cluster.waiting.wait_harness import RunningApply

NAMES: Final = ("by-condition", "by-field", "by-rollout", "by-value")
TARGETS: Final = ("DNSRecord/by-condition", "Service/by-field", "Deployment/by-rollout", "DNSRecord/by-value")
# The message of each wait without a status.
AT_START: Final = {
    "by-condition": "condition Ready is not there yet (there: none)",
    "by-field": f"{ADDRESS} is not there yet",
    "by-rollout": "the controller has not reported yet",
    "by-value": 'status.phase is not there, wanted "Active"; status.zone is not there, wanted "example.com"',
}
# The message of each wait after `report_halfway`.
HALFWAY: Final = {
    "by-condition": "condition Ready is False, wanted True (Checking: asks the name servers)",
    "by-field": f"{ADDRESS} is not there yet",
    "by-rollout": "2 of 3 replicas available",
    "by-value": 'status.phase is "Pending", wanted "Active"',
}


def four_objects(timeout: str = "240s") -> list[Any]:
    """The manifests, and one that depends on all of them."""
    waits = {"timeout": timeout}
    values = {"status.phase": "Active", "status.zone": "example.com"}
    after = ",".join(f"KubernetesObject/{name}" for name in NAMES)
    return [
        kubernetes_object(config_map("dependant", made="true"), after=after),
        kubernetes_object(record("by-condition"), waitFor={"condition": "Ready", **waits}),
        kubernetes_object(service("by-field"), waitFor={"field": ADDRESS, **waits}),
        kubernetes_object(deployment("by-rollout"), waitFor={"rollout": True, **waits}),
        kubernetes_object(record("by-value"), waitFor={"fieldValue": values, **waits}),
    ]


def report_halfway(controllers: FakeControllers) -> None:
    """Controllers report some progress."""
    why = {"reason": "Checking", "message": "asks the name servers"}
    controllers.patch_status("DNSRecord/by-condition", conditions=[condition("Ready", "False", **why)])
    controllers.patch_status(
        "Service/by-field", conditions=[condition("Programmed", "False", reason="Busy", message="")]
    )
    controllers.report_replicas("Deployment/by-rollout", 3, up=2)
    controllers.patch_status("DNSRecord/by-value", phase="Pending", zone="example.com")


def report_done(controllers: FakeControllers) -> None:
    """Controllers report that all waits are satisfied."""
    controllers.patch_status("DNSRecord/by-condition", conditions=[condition("Ready", "True")])
    controllers.report_address("Service/by-field", "203.0.113.1")
    controllers.report_replicas("Deployment/by-rollout", 3)
    controllers.patch_status("DNSRecord/by-value", phase="Active", zone="example.com")


def until_all_wait(running: RunningApply) -> None:
    """Returns when all four waits have begun."""
    running.until_printed(*(f"KubernetesObject here/{name} waiting: {why}\n" for name, why in AT_START.items()))


def uids(controllers: FakeControllers) -> list[str]:
    """The uids of the four objects."""
    return [controllers.get(target)["metadata"]["uid"] for target in TARGETS]
