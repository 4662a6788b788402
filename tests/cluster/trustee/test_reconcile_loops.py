"""No write without a change: neither irrelevant events nor own writes cause further writes."""

from functools import partial
from typing import Final

from tests.cluster.polling import until
from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace

FLIPS: Final = 50
PASSES: Final = 100


def test_irrelevant_conditions_of_the_deployment_cause_no_write(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle_ready(trustee_config())
    requests, steps = len(trustee_cluster.requests()), trustee_cluster.reconciles("KbsConfig")

    for number in range(FLIPS):
        at = f"2026-01-01T00:{number:02}:00Z"
        beat = {"type": "Progressing", "status": "True", "reason": f"Beat{number}", "message": "", "lastUpdateTime": at}
        body = {"status": {"conditions": [{**beat, "lastTransitionTime": at}]}}
        assert trustee.kubectl.access.call("PATCH", f"{trustee.path(DEPLOYMENT)}/status", body).status == 200
    # Watch events are ordered: this one comes after all of them.
    trustee.report_replicas(0)
    trustee.until(TRUSTEE, lambda found: "isReady" not in found["status"])

    writes = [one for one in trustee_cluster.writes(requests, trustee.namespace) if "/events" not in one]
    assert writes == [f"PATCH {trustee.path(KBS)}/status", f"PATCH {trustee.path(TRUSTEE)}/status"]
    assert trustee_cluster.reconciles("KbsConfig") > steps + 2


def test_a_hundred_reconciles_without_a_change_write_nothing(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle_ready(trustee_config())
    children = (KBS, DEPLOYMENT, SERVICE, "secret/tc-auth-secret", "configmap/tc-kbs-config")
    before = [trustee.version(target) for target in (TRUSTEE, *children)]
    requests = len(trustee_cluster.requests())

    while (reads := _reads(trustee_cluster, requests, trustee)) < PASSES:
        # An irrelevant annotation, which triggers a reconcile of the owner.
        body = {"metadata": {"annotations": {"example.com/note": str(reads)}}}
        assert trustee.kubectl.access.call("PATCH", trustee.path("configmap/tc-resource-policy"), body).status == 200
        until(partial(_are_more, trustee_cluster, requests, trustee, reads))

    assert trustee_cluster.writes(requests, trustee.namespace) == []
    assert [trustee.version(target) for target in (TRUSTEE, *children)] == before


def _are_more(trustee_cluster: TrusteeCluster, requests: int, trustee: TrusteeNamespace, reads: int) -> bool:
    return _reads(trustee_cluster, requests, trustee) > reads


def _reads(trustee_cluster: TrusteeCluster, requests: int, trustee: TrusteeNamespace) -> int:
    """How often the first child was read: once in each reconcile."""
    path = trustee.path("configmap/tc-attestation-policy-gpu")
    return sum(one.method == "GET" and one.path == path for one in trustee_cluster.requests(requests))


def test_a_requested_reconcile_is_acknowledged_and_nothing_else_is_written(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle_ready(trustee_config())
    requests = len(trustee_cluster.requests())

    for number in range(10):
        trustee.kubectl("annotate", "--overwrite", TRUSTEE, f"setpoint.dev/reconcile-requested-at={number}")
        handled = f"--for=jsonpath={{.status.lastHandledReconcileAt}}={number}"
        trustee.kubectl("wait", TRUSTEE, handled, "--timeout=240s")

    assert trustee_cluster.writes(requests, trustee.namespace) == [f"PATCH {trustee.path(TRUSTEE)}/status"] * 10


def test_a_restarted_controller_writes_nothing(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    """It reconciles all that the tests before left, edited, failed and ready; and one that is not ready."""
    trustee_cluster.new_namespace().settle(trustee_config())
    trustee.settle_ready(trustee_config())
    before = [trustee.version(target) for target in (TRUSTEE, KBS, DEPLOYMENT, SERVICE)]
    trustee_cluster.drain()
    requests = len(trustee_cluster.requests())

    trustee_cluster.restart_controller()

    assert [one for one in trustee_cluster.writes(requests) if "/events" not in one] == []
    assert trustee_cluster.writes(requests, trustee.namespace) == []
    assert [trustee.version(target) for target in (TRUSTEE, KBS, DEPLOYMENT, SERVICE)] == before
