"""Status updates by controllers are no drift."""

from setpoint.core.decide import Decision
from setpoint.engine.step.outcomes import Settled
from tests.cluster.objects.object_harness import ObjectHarness, deployment

APPS = "apis/apps/v1"
# A thousand are in tests/cluster/waiting/test_volatile.py.
UPDATES = 200


def test_status_updates_are_no_drift_and_cost_no_write(harness: ObjectHarness) -> None:
    harness.settle(deployment(replicas=3))
    writes, status = harness.writes(), harness.status()
    revision = harness.run(harness.store.get(harness.ref()))
    path = harness.path("deployments", "web/status", APPS)

    decisions = set()
    for count in range(UPDATES):
        condition = {"type": "Available", "status": "True", "lastTransitionTime": f"2026-01-01T00:{count % 60:02}:00Z"}
        harness.edit(path, {"status": {"observedGeneration": 1, "replicas": count, "conditions": [condition]}})
        outcome = harness.step()
        assert isinstance(outcome, Settled)
        assert outcome.plan.is_empty
        decisions.add(outcome.plan.decision)
        if count % 100 == 0:
            assert harness.plan().is_empty

    assert decisions == {Decision.IN_SYNC}
    assert harness.writes() == writes
    assert harness.status() == status
    assert harness.run(harness.store.get(harness.ref())) == revision
