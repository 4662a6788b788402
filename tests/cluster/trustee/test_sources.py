"""What a TrusteeConfig is made of that others make: what is missing is told, and what comes is taken up."""

from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import restricted, secret, tls_secret, tls_secrets, trustee_config, volume
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_a_certificate_that_is_missing_is_told_and_taken_up_when_it_comes(estate: Estate, plot: Plot) -> None:
    plot.apply(tls_secret("token-tls"), restricted())
    said = plot.until_told(TRUSTEE, "Ready", "DependencyNotFound")
    plot.until_noted(TRUSTEE, "DependencyNotFound")

    assert said == (
        "False",
        "DependencyNotFound",
        "HTTPS secrets: Secret https-tls not found: create it, of type kubernetes.io/tls, in the same namespace",
    )
    assert plot.see(KBS) is None
    assert plot.see("configmap/tc-resource-policy") is not None

    plot.apply(tls_secret("https-tls"))
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_a_certificate_of_the_wrong_type_is_told_and_taken_up_when_it_is_right(estate: Estate, plot: Plot) -> None:
    plot.apply(tls_secret("token-tls"), secret("https-tls"), restricted())
    said = plot.until_told(TRUSTEE, "Ready", "DependencyInvalid")

    assert said.message == ("HTTPS secrets: Secret https-tls is not of type kubernetes.io/tls: create one that is")
    assert plot.see(KBS) is None

    plot.kubectl("delete", "secret/https-tls")
    plot.apply(tls_secret("https-tls"))
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_a_certificate_that_goes_leaves_everything_as_it_is(estate: Estate, plot: Plot) -> None:
    plot.settle(*tls_secrets(), restricted())
    before = plot.version("secret/tc-https-key-secret")

    plot.delete("secret/https-tls")
    plot.until_told(TRUSTEE, "Ready", "DependencyNotFound")

    assert plot.version("secret/tc-https-key-secret") == before
    estate.hold(plot, *ALL, "secret/tc-https-key-secret")


def test_ibm_se_waits_for_its_volume_and_claims_it(estate: Estate, plot: Plot) -> None:
    name = f"{plot.namespace}-certificates"
    plot.apply(trustee_config(ibmSE={"pvName": name}))
    said = plot.until_told(TRUSTEE, "Ready", "DependencyNotFound")
    assert said.message.startswith(f"IBM SE PVC: PersistentVolume {name} not found")
    assert plot.see(KBS) is None

    plot.apply(volume(name))
    plot.until_rolling_out()

    claim = plot.see("persistentvolumeclaim/tc-ibmse-certstore-pvc")
    assert claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert (claim["spec"]["volumeName"], claim["spec"]["storageClassName"]) == (name, "")
    assert claim["spec"]["resources"] == {"requests": {"storage": "100Mi"}}
    assert claim["metadata"]["ownerReferences"][0]["uid"] == plot.see(TRUSTEE)["metadata"]["uid"]
    spec = plot.see(KBS)["spec"]
    assert spec["ibmSEConfigSpec"] == {"certStorePvc": "tc-ibmse-certstore-pvc"}
    assert not spec.keys() & {"kbsAttestationPolicyConfigMapName", "kbsGpuAttestationPolicyConfigMapName"}
    assert plot.see("configmap/tc-attestation-policy-cpu") is None
    estate.hold(plot, *ALL, "persistentvolumeclaim/tc-ibmse-certstore-pvc")


def test_ibm_se_with_a_volume_that_is_there_goes_at_once(estate: Estate, plot: Plot) -> None:
    name = f"{plot.namespace}-certificates"
    plot.settle(volume(name), trustee_config(ibmSE={"pvName": name}))

    volumes = plot.see(DEPLOYMENT)["spec"]["template"]["spec"]["volumes"]
    assert {"claimName": "tc-ibmse-certstore-pvc"} in [one.get("persistentVolumeClaim") for one in volumes]
    estate.hold(plot, *ALL)
