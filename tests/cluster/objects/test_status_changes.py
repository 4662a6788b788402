"""Changes of the status by another controller cause no write."""

from setpoint.core.decide import Decision
from setpoint.engine.context import Settled
from tests.cluster.objects.site import Site, deployment

APPS = "apis/apps/v1"
CHANGES = 1_000


def test_a_thousand_changes_of_a_status_are_no_change_and_cost_no_write(site: Site) -> None:
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
