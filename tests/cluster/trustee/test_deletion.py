"""Deletion: the children of a TrusteeConfig by garbage collection, a KbsConfig after its Deployment."""

from tests.cluster.fixtures import require_controllers
from tests.cluster.polling import until
from tests.cluster.trustee.manifests import kbs_config, restricted, secret, tls_secrets, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, condition_of

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


def test_the_children_of_a_trustee_config_are_collected(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    require_controllers(trustee_cluster.access)
    trustee.settle(*tls_secrets(), restricted())
    assert [target for target in CHILDREN if trustee.get(target) is None] == []

    trustee.kubectl("delete", TRUSTEE, "--timeout=240s")
    until(lambda: all(trustee.get(target) is None for target in CHILDREN))

    assert trustee.get("secret/https-tls") is not None
    trustee_cluster.expect_no_more_writes(trustee, TRUSTEE, *CHILDREN, "secret/https-tls")


def test_a_new_trustee_config_of_the_same_name_generates_its_children_anew(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    trustee.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 3}})
    trustee.until_condition(TRUSTEE, "Edited", "EditsKept")
    before = trustee.version(KBS)

    trustee.delete(TRUSTEE)
    trustee.apply(trustee_config())
    trustee.until_recreated(before)
    trustee.until_rolling_out()

    assert trustee.get(KBS)["spec"]["KbsDeploymentSpec"] == {"replicas": 1}
    assert condition_of(trustee.get(TRUSTEE), "Edited").status == "False"
    owner = trustee.get(TRUSTEE)["metadata"]["uid"]
    for target in ("configmap/tc-kbs-config", "secret/tc-auth-secret", "secret/attestation-status"):
        trustee.until(target, lambda found: found["metadata"]["ownerReferences"][0]["uid"] == owner)
    trustee_cluster.expect_no_more_writes(trustee, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_a_kbs_config_is_removed_after_its_deployment(trustee: TrusteeNamespace) -> None:
    trustee.apply(*_own_parts(), kbs_config("own", kbsConfigMapName="settings", kbsAuthSecretName="auth"))
    trustee.until_condition("kbsconfig/own", "Ready", "RollingOut")
    assert trustee.get("kbsconfig/own")["metadata"]["finalizers"] == [FINALIZER]
    # Delays the deletion of the Deployment.
    trustee.patch(DEPLOYMENT, metadata={"finalizers": ["example.com/slow"]})

    trustee.delete("kbsconfig/own")
    trustee.until(DEPLOYMENT, lambda found: "deletionTimestamp" in found["metadata"])
    trustee.kubectl("patch", DEPLOYMENT, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    trustee.kubectl("wait", "--for=delete", "kbsconfig/own", "--timeout=240s")

    assert trustee.get(DEPLOYMENT) is None


def test_a_kbs_config_without_a_deployment_is_removed(trustee: TrusteeNamespace) -> None:
    trustee.apply(kbs_config("own", kbsConfigMapName="missing", kbsAuthSecretName="missing"))
    trustee.until_condition("kbsconfig/own", "Ready", "DependencyNotFound")
    assert trustee.get("kbsconfig/own")["metadata"]["finalizers"] == [FINALIZER]

    trustee.kubectl("delete", "kbsconfig/own", "--timeout=240s")

    assert trustee.get("kbsconfig/own") is None


def test_a_kbs_config_is_removed_when_its_deployment_was_deleted_before(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(*_own_parts(), kbs_config("own", kbsConfigMapName="settings", kbsAuthSecretName="auth"))
    trustee.until_condition("kbsconfig/own", "Ready", "RollingOut")

    assert trustee_cluster.controller.stop() == 0
    trustee.kubectl("delete", DEPLOYMENT)
    trustee.delete("kbsconfig/own")
    assert trustee.get("kbsconfig/own")["metadata"]["deletionTimestamp"]
    trustee_cluster.controller.start()
    trustee.kubectl("wait", "--for=delete", "kbsconfig/own", "--timeout=240s")

    assert trustee.get(DEPLOYMENT) is None


def _own_parts() -> tuple[dict[str, object], ...]:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    return {**settings, "data": {"kbs-config.toml": ""}}, secret("auth")
