"""Writes whose answers do not arrive: people's edits are still people's, and ours are ours."""

from tests.cluster.running.proxy import lost_answers, no_fault
from tests.cluster.trustee.manifests import restricted, tls_secrets, trustee_config
from tests.cluster.trustee.test_lifecycle import PERMISSIVE_SPEC
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, told

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_nothing_of_ours_is_taken_for_an_edit(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    other = trustee_cluster.new_namespace()
    with trustee_cluster.fault(no_fault, lost_answers(0.3)):
        trustee.settle(trustee_config())
        other.settle(*tls_secrets(), restricted())
        other.apply(trustee_config())
        other.until(KBS, lambda found: found["spec"] == PERMISSIVE_SPEC)

    for one in (trustee, other):
        one.until_rolling_out()
        assert one.see(KBS)["spec"] == PERMISSIVE_SPEC
        assert told(one.see(TRUSTEE), "Edited").status == "False"
        assert "conflicts" not in one.see(TRUSTEE)["status"]
        reasons = {note["reason"] for note in one.events("trusteeconfig", "tc")}
        assert not reasons & {"Reverted", "MadeAnew", "EditsKept", "Conflicting"}
        trustee_cluster.hold(one, *ALL)


def test_every_edit_of_many_is_kept(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(*tls_secrets(), trustee_config())

    with trustee_cluster.fault(no_fault, lost_answers(0.3)):
        for number in range(10):
            trustee.patch(
                KBS, spec={"KbsDeploymentSpec": {"replicas": number + 2}, "KbsEnvVars": {f"MINE_{number}": "1"}}
            )
            trustee.patch(TRUSTEE, spec={"kbsServiceType": "NodePort" if number % 2 else "ClusterIP"})
        trustee.until(SERVICE, lambda found: found["spec"]["type"] == "NodePort")
        trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 11)
    trustee.until_rolling_out()

    mine = {f"MINE_{number}": "1" for number in range(10)}
    spec = trustee.see(KBS)["spec"]
    assert spec["KbsDeploymentSpec"] == {"replicas": 11}
    assert spec["KbsEnvVars"] == {"RUST_LOG": "debug", **mine}
    assert told(trustee.see(TRUSTEE), "Edited").message.startswith("11 preserved: ")
    trustee_cluster.hold(trustee, *ALL)
