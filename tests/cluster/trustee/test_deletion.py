"""What goes with what: a TrusteeConfig by garbage collection, and a KbsConfig not before its Deployment."""

from tests.cluster.fixtures import require_controllers
from tests.cluster.polling import until
from tests.cluster.trustee.manifests import kbs_config, restricted, secret, tls_secrets, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, told

FINALIZER = "kbsconfig.confidentialcontainers.org/finalizer"
CHILDREN = (
    KBS,
    DEPLOYMENT,
    SERVICE,
    "configmap/tc-kbs-config",
    "configmap/tc-resource-policy",
    "configmap/tc-rvps-reference-values",
    "configmap/tc-attestation-policy-cpu",
    "configmap/tc-attestation-policy-gpu",
    "secret/tc-auth-secret",
    "secret/attestation-status",
    "secret/tc-https-key-secret",
    "secret/tc-https-cert-secret",
    "secret/tc-attestation-key-secret",
    "secret/tc-attestation-cert-secret",
)


def test_all_that_a_trustee_config_made_goes_with_it(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    require_controllers(trustee_cluster.access)
    trustee.settle(*tls_secrets(), restricted())
    assert [target for target in CHILDREN if trustee.see(target) is None] == []

    trustee.kubectl("delete", TRUSTEE, "--timeout=240s")
    until(lambda: all(trustee.see(target) is None for target in CHILDREN))

    assert trustee.see("secret/https-tls") is not None
    trustee_cluster.hold(trustee, TRUSTEE, *CHILDREN, "secret/https-tls")


def test_one_of_the_same_name_starts_anew(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    trustee.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 3}})
    trustee.until_told(TRUSTEE, "Edited", "EditsKept")
    before = trustee.version(KBS)

    trustee.delete(TRUSTEE)
    trustee.apply(trustee_config())
    trustee.until_made_anew(before)
    trustee.until_rolling_out()

    assert trustee.see(KBS)["spec"]["KbsDeploymentSpec"] == {"replicas": 1}
    assert told(trustee.see(TRUSTEE), "Edited").status == "False"
    owner = trustee.see(TRUSTEE)["metadata"]["uid"]
    for target in ("configmap/tc-kbs-config", "secret/tc-auth-secret", "secret/attestation-status"):
        trustee.until(target, lambda found: found["metadata"]["ownerReferences"][0]["uid"] == owner)
    trustee_cluster.hold(trustee, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_a_kbs_config_goes_after_its_deployment(trustee: TrusteeNamespace) -> None:
    trustee.apply(*_own_parts(), kbs_config("own", kbsConfigMapName="settings", kbsAuthSecretName="auth"))
    trustee.until_told("kbsconfig/own", "Ready", "RollingOut")
    assert trustee.see("kbsconfig/own")["metadata"]["finalizers"] == [FINALIZER]
    # As a Deployment that takes its time to go.
    trustee.patch(DEPLOYMENT, metadata={"finalizers": ["example.com/slow"]})

    trustee.delete("kbsconfig/own")
    trustee.until(DEPLOYMENT, lambda found: "deletionTimestamp" in found["metadata"])
    trustee.kubectl("patch", DEPLOYMENT, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    trustee.kubectl("wait", "--for=delete", "kbsconfig/own", "--timeout=240s")

    assert trustee.see(DEPLOYMENT) is None


def test_a_kbs_config_that_never_had_a_deployment_goes_at_once(trustee: TrusteeNamespace) -> None:
    trustee.apply(kbs_config("own", kbsConfigMapName="missing", kbsAuthSecretName="missing"))
    trustee.until_told("kbsconfig/own", "Ready", "DependencyNotFound")
    assert trustee.see("kbsconfig/own")["metadata"]["finalizers"] == [FINALIZER]

    trustee.kubectl("delete", "kbsconfig/own", "--timeout=240s")

    assert trustee.see("kbsconfig/own") is None


def test_a_kbs_config_whose_deployment_is_gone_already_goes_at_once(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(*_own_parts(), kbs_config("own", kbsConfigMapName="settings", kbsAuthSecretName="auth"))
    trustee.until_told("kbsconfig/own", "Ready", "RollingOut")

    assert trustee_cluster.keeper.stop() == 0
    trustee.kubectl("delete", DEPLOYMENT)
    trustee.delete("kbsconfig/own")
    assert trustee.see("kbsconfig/own")["metadata"]["deletionTimestamp"]
    trustee_cluster.keeper.start()
    trustee.kubectl("wait", "--for=delete", "kbsconfig/own", "--timeout=240s")

    assert trustee.see(DEPLOYMENT) is None


def _own_parts() -> tuple[dict[str, object], ...]:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    return {**settings, "data": {"kbs-config.toml": ""}}, secret("auth")
