"""Secrets and volumes that a TrusteeConfig refers to: a missing one is reported, and used once it exists."""

from tests.cluster.trustee.manifests import restricted, secret, tls_secret, tls_secrets, trustee_config, volume
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_a_missing_certificate_is_reported_and_used_once_it_exists(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(tls_secret("token-tls"), restricted())
    condition = trustee.until_condition(TRUSTEE, "Ready", "DependencyNotFound")
    trustee.until_event(TRUSTEE, "DependencyNotFound")

    assert condition == (
        "False",
        "DependencyNotFound",
        "HTTPS secrets: Secret https-tls not found: create it, of type kubernetes.io/tls, in the same namespace",
    )
    assert trustee.get(KBS) is None
    assert trustee.get("configmap/tc-resource-policy") is not None

    trustee.apply(tls_secret("https-tls"))
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_certificate_of_the_wrong_type_is_reported_until_it_is_replaced(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(tls_secret("token-tls"), secret("https-tls"), restricted())
    condition = trustee.until_condition(TRUSTEE, "Ready", "DependencyInvalid")

    assert condition.message == ("HTTPS secrets: Secret https-tls is not of type kubernetes.io/tls: create one that is")
    assert trustee.get(KBS) is None

    trustee.kubectl("delete", "secret/https-tls")
    trustee.apply(tls_secret("https-tls"))
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_deleted_certificate_is_reported_and_changes_no_child(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), restricted())
    before = trustee.version("secret/tc-https-key-secret")

    trustee.delete("secret/https-tls")
    trustee.until_condition(TRUSTEE, "Ready", "DependencyNotFound")

    assert trustee.version("secret/tc-https-key-secret") == before
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "secret/tc-https-key-secret")


def test_ibm_se_waits_for_its_volume_and_claims_it(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    name = f"{trustee.namespace}-certificates"
    trustee.apply(trustee_config(ibmSE={"pvName": name}))
    condition = trustee.until_condition(TRUSTEE, "Ready", "DependencyNotFound")
    assert condition.message.startswith(f"IBM SE PVC: PersistentVolume {name} not found")
    assert trustee.get(KBS) is None

    trustee.apply(volume(name))
    trustee.until_rolling_out()

    claim = trustee.get("persistentvolumeclaim/tc-ibmse-certstore-pvc")
    assert claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert (claim["spec"]["volumeName"], claim["spec"]["storageClassName"]) == (name, "")
    assert claim["spec"]["resources"] == {"requests": {"storage": "100Mi"}}
    assert claim["metadata"]["ownerReferences"][0]["uid"] == trustee.get(TRUSTEE)["metadata"]["uid"]
    spec = trustee.get(KBS)["spec"]
    assert spec["ibmSEConfigSpec"] == {"certStorePvc": "tc-ibmse-certstore-pvc"}
    assert not spec.keys() & {"kbsAttestationPolicyConfigMapName", "kbsGpuAttestationPolicyConfigMapName"}
    assert trustee.get("configmap/tc-attestation-policy-cpu") is None
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "persistentvolumeclaim/tc-ibmse-certstore-pvc")


def test_ibm_se_claims_an_existing_volume(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    name = f"{trustee.namespace}-certificates"
    trustee.settle(volume(name), trustee_config(ibmSE={"pvName": name}))

    volumes = trustee.get(DEPLOYMENT)["spec"]["template"]["spec"]["volumes"]
    assert {"claimName": "tc-ibmse-certstore-pvc"} in [one.get("persistentVolumeClaim") for one in volumes]
    trustee_cluster.expect_no_more_writes(trustee, *ALL)
