"""What controllers write is no business of ours."""

from setpoint.core.decide import Decision
from setpoint.engine.context import Settled
from tests.cluster.objects.object_harness import Site, deployment

APPS = "apis/apps/v1"
# As many as there are rounds of the clock in them; a thousand are in tests/cluster/waiting/test_volatile.py.
CHANGES = 200


def test_changes_of_a_status_are_no_change_and_cost_no_write(site: Site) -> None:
    site.settle(deployment(replicas=3))
    writes, status = site.writes(), site.status()
    revision = site.run(site.store.get(site.ref()))
    path = site.path("deployments", "web/status", APPS)

    decisions = set()
    for count in range(CHANGES):
        condition = {"type": "Available", "status": "True", "lastTransitionTime": f"2026-01-01T00:{count % 60:02}:00Z"}
        site.edit(path, {"status": {"observedGeneration": 1, "replicas": count, "conditions": [condition]}})
        outcome = site.step()
        assert isinstance(outcome, Settled)
        assert outcome.plan.is_empty
        decisions.add(outcome.plan.decision)
        if count % 100 == 0:
            assert site.plan().is_empty

    assert decisions == {Decision.IN_SYNC}
    assert site.writes() == writes
    assert site.status() == status
    assert site.run(site.store.get(site.ref())) == revision
