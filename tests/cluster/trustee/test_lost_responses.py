"""Lost responses to writes: neither are own writes taken for edits, nor are edits lost."""

from tests.cluster.running.proxy import lost_responses, no_fault
from tests.cluster.trustee.manifests import restricted, tls_secrets, trustee_config
from tests.cluster.trustee.test_lifecycle import PERMISSIVE_SPEC
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, condition_of

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_own_writes_are_not_taken_for_edits(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    other = trustee_cluster.new_namespace()
    with trustee_cluster.fault(no_fault, lost_responses(0.3)):
        trustee.settle(trustee_config())
        other.settle(*tls_secrets(), restricted())
        other.apply(trustee_config())
        other.until(KBS, lambda found: found["spec"] == PERMISSIVE_SPEC)

    for one in (trustee, other):
        one.until_rolling_out()
        assert one.get(KBS)["spec"] == PERMISSIVE_SPEC
        assert condition_of(one.get(TRUSTEE), "Edited").status == "False"
        assert "conflicts" not in one.get(TRUSTEE)["status"]
        reasons = {event["reason"] for event in one.events("trusteeconfig", "tc")}
        assert not reasons & {"Reverted", "MadeAnew", "EditsKept", "Conflicting"}
        trustee_cluster.expect_no_more_writes(one, *ALL)


def test_every_edit_is_kept(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(*tls_secrets(), trustee_config())

    with trustee_cluster.fault(no_fault, lost_responses(0.3)):
        for number in range(10):
            trustee.patch(
                KBS, spec={"KbsDeploymentSpec": {"replicas": number + 2}, "KbsEnvVars": {f"MINE_{number}": "1"}}
            )
            trustee.patch(TRUSTEE, spec={"kbsServiceType": "NodePort" if number % 2 else "ClusterIP"})
        trustee.until(SERVICE, lambda found: found["spec"]["type"] == "NodePort")
        trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 11)
    trustee.until_rolling_out()

    added = {f"MINE_{number}": "1" for number in range(10)}
    spec = trustee.get(KBS)["spec"]
    assert spec["KbsDeploymentSpec"] == {"replicas": 11}
    assert spec["KbsEnvVars"] == {"RUST_LOG": "debug", **added}
    assert condition_of(trustee.get(TRUSTEE), "Edited").message.startswith("11 preserved: ")
    trustee_cluster.expect_no_more_writes(trustee, *ALL)
