"""What a TrusteeConfig is made of that others make: what is missing is told, and what comes is taken up."""

from tests.cluster.trustee.manifests import restricted, secret, tls_secret, tls_secrets, trustee_config, volume
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_a_certificate_that_is_missing_is_told_and_taken_up_when_it_comes(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(tls_secret("token-tls"), restricted())
    said = trustee.until_told(TRUSTEE, "Ready", "DependencyNotFound")
    trustee.until_noted(TRUSTEE, "DependencyNotFound")

    assert said == (
        "False",
        "DependencyNotFound",
        "HTTPS secrets: Secret https-tls not found: create it, of type kubernetes.io/tls, in the same namespace",
    )
    assert trustee.see(KBS) is None
    assert trustee.see("configmap/tc-resource-policy") is not None

    trustee.apply(tls_secret("https-tls"))
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_a_certificate_of_the_wrong_type_is_told_and_taken_up_when_it_is_right(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(tls_secret("token-tls"), secret("https-tls"), restricted())
    said = trustee.until_told(TRUSTEE, "Ready", "DependencyInvalid")

    assert said.message == ("HTTPS secrets: Secret https-tls is not of type kubernetes.io/tls: create one that is")
    assert trustee.see(KBS) is None

    trustee.kubectl("delete", "secret/https-tls")
    trustee.apply(tls_secret("https-tls"))
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_a_certificate_that_goes_leaves_everything_as_it_is(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), restricted())
    before = trustee.version("secret/tc-https-key-secret")

    trustee.delete("secret/https-tls")
    trustee.until_told(TRUSTEE, "Ready", "DependencyNotFound")

    assert trustee.version("secret/tc-https-key-secret") == before
    trustee_cluster.hold(trustee, *ALL, "secret/tc-https-key-secret")


def test_ibm_se_waits_for_its_volume_and_claims_it(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    name = f"{trustee.namespace}-certificates"
    trustee.apply(trustee_config(ibmSE={"pvName": name}))
    said = trustee.until_told(TRUSTEE, "Ready", "DependencyNotFound")
    assert said.message.startswith(f"IBM SE PVC: PersistentVolume {name} not found")
    assert trustee.see(KBS) is None

    trustee.apply(volume(name))
    trustee.until_rolling_out()

    claim = trustee.see("persistentvolumeclaim/tc-ibmse-certstore-pvc")
    assert claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert (claim["spec"]["volumeName"], claim["spec"]["storageClassName"]) == (name, "")
    assert claim["spec"]["resources"] == {"requests": {"storage": "100Mi"}}
    assert claim["metadata"]["ownerReferences"][0]["uid"] == trustee.see(TRUSTEE)["metadata"]["uid"]
    spec = trustee.see(KBS)["spec"]
    assert spec["ibmSEConfigSpec"] == {"certStorePvc": "tc-ibmse-certstore-pvc"}
    assert not spec.keys() & {"kbsAttestationPolicyConfigMapName", "kbsGpuAttestationPolicyConfigMapName"}
    assert trustee.see("configmap/tc-attestation-policy-cpu") is None
    trustee_cluster.hold(trustee, *ALL, "persistentvolumeclaim/tc-ibmse-certstore-pvc")


def test_ibm_se_with_a_volume_that_is_there_goes_at_once(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    name = f"{trustee.namespace}-certificates"
    trustee.settle(volume(name), trustee_config(ibmSE={"pvName": name}))

    volumes = trustee.see(DEPLOYMENT)["spec"]["template"]["spec"]["volumes"]
    assert {"claimName": "tc-ibmse-certstore-pvc"} in [one.get("persistentVolumeClaim") for one in volumes]
    trustee_cluster.hold(trustee, *ALL)
