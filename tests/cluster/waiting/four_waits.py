"""The four waits at once: for a field, for values of fields, for a condition, for a rollout."""

from typing import Any, Final

from tests.cluster.waiting.fake_controllers import FakeControllers, condition
from tests.cluster.waiting.manifests import ADDRESS, config_map, deployment, kept, record, service
from tests.cluster.waiting.wait_harness import Applying

NAMES: Final = ("by-condition", "by-field", "by-rollout", "by-value")
TARGETS: Final = ("DNSRecord/by-condition", "Service/by-field", "Deployment/by-rollout", "DNSRecord/by-value")
# The message of each while no status is reported.
AT_FIRST: Final = {
    "by-condition": "condition Ready is not there yet (there: none)",
    "by-field": f"{ADDRESS} is not there yet",
    "by-rollout": "the controller has not reported yet",
    "by-value": 'status.phase is not there, wanted "Active"; status.zone is not there, wanted "example.com"',
}
# The same when they have come half of the way.
HALFWAY: Final = {
    "by-condition": "condition Ready is False, wanted True (Checking: asks the name servers)",
    "by-field": f"{ADDRESS} is not there yet",
    "by-rollout": "2 of 3 replicas available",
    "by-value": 'status.phase is "Pending", wanted "Active"',
}


def four(timeout: str = "240s") -> list[Any]:
    """The manifests, and one that comes after all of them."""
    waits = {"timeout": timeout}
    values = {"status.phase": "Active", "status.zone": "example.com"}
    after = ",".join(f"KubernetesObject/{name}" for name in NAMES)
    return [
        kept(config_map("dependant", made="true"), after=after),
        kept(record("by-condition"), waitFor={"condition": "Ready", **waits}),
        kept(service("by-field"), waitFor={"field": ADDRESS, **waits}),
        kept(deployment("by-rollout"), waitFor={"rollout": True, **waits}),
        kept(record("by-value"), waitFor={"fieldValue": values, **waits}),
    ]


def play_halfway(controllers: FakeControllers) -> None:
    """Controllers have begun."""
    why = {"reason": "Checking", "message": "asks the name servers"}
    controllers.report("DNSRecord/by-condition", conditions=[condition("Ready", "False", **why)])
    controllers.report("Service/by-field", conditions=[condition("Programmed", "False", reason="Busy", message="")])
    controllers.bring_up("Deployment/by-rollout", 3, up=2)
    controllers.report("DNSRecord/by-value", phase="Pending", zone="example.com")


def play(controllers: FakeControllers) -> None:
    """Controllers are done."""
    controllers.report("DNSRecord/by-condition", conditions=[condition("Ready", "True")])
    controllers.give_address("Service/by-field", "203.0.113.1")
    controllers.bring_up("Deployment/by-rollout", 3)
    controllers.report("DNSRecord/by-value", phase="Active", zone="example.com")


def until_all_wait(applying: Applying) -> None:
    """Returns when all four are waited for."""
    applying.until_said(*(f"KubernetesObject here/{name} waiting: {why}\n" for name, why in AT_FIRST.items()))


def uids(controllers: FakeControllers) -> list[str]:
    """Which objects they are."""
    return [controllers.see(target)["metadata"]["uid"] for target in TARGETS]
