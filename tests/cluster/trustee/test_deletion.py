"""What goes with what: a TrusteeConfig by garbage collection, and a KbsConfig not before its Deployment."""

from tests.cluster.fixtures import require_controllers
from tests.cluster.patience import until
from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import kbs_config, restricted, secret, tls_secrets, trustee_config
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot, told

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


def test_all_that_a_trustee_config_made_goes_with_it(estate: Estate, plot: Plot) -> None:
    require_controllers(estate.access)
    plot.settle(*tls_secrets(), restricted())
    assert [target for target in CHILDREN if plot.see(target) is None] == []

    plot.kubectl("delete", TRUSTEE, "--timeout=60s")
    until(lambda: all(plot.see(target) is None for target in CHILDREN))

    assert plot.see("secret/https-tls") is not None
    estate.hold(plot, TRUSTEE, *CHILDREN, "secret/https-tls")


def test_one_of_the_same_name_starts_anew(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    plot.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 3}})
    plot.until_told(TRUSTEE, "Edited", "EditsKept")
    before = plot.version(KBS)

    plot.delete(TRUSTEE)
    plot.apply(trustee_config())
    plot.until_made_anew(before)
    plot.until_rolling_out()

    assert plot.see(KBS)["spec"]["KbsDeploymentSpec"] == {"replicas": 1}
    assert told(plot.see(TRUSTEE), "Edited").status == "False"
    owner = plot.see(TRUSTEE)["metadata"]["uid"]
    for target in ("configmap/tc-kbs-config", "secret/tc-auth-secret", "secret/attestation-status"):
        plot.until(target, lambda found: found["metadata"]["ownerReferences"][0]["uid"] == owner)
    estate.hold(plot, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_a_kbs_config_goes_after_its_deployment(plot: Plot) -> None:
    plot.apply(*_own_parts(), kbs_config("own", kbsConfigMapName="settings", kbsAuthSecretName="auth"))
    plot.until_told("kbsconfig/own", "Ready", "RollingOut")
    assert plot.see("kbsconfig/own")["metadata"]["finalizers"] == [FINALIZER]
    # As a Deployment that takes its time to go.
    plot.patch(DEPLOYMENT, metadata={"finalizers": ["example.com/slow"]})

    plot.delete("kbsconfig/own")
    plot.until(DEPLOYMENT, lambda found: "deletionTimestamp" in found["metadata"])
    plot.kubectl("patch", DEPLOYMENT, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    plot.kubectl("wait", "--for=delete", "kbsconfig/own", "--timeout=60s")

    assert plot.see(DEPLOYMENT) is None


def test_a_kbs_config_that_never_had_a_deployment_goes_at_once(plot: Plot) -> None:
    plot.apply(kbs_config("own", kbsConfigMapName="missing", kbsAuthSecretName="missing"))
    plot.until_told("kbsconfig/own", "Ready", "DependencyNotFound")
    assert plot.see("kbsconfig/own")["metadata"]["finalizers"] == [FINALIZER]

    plot.kubectl("delete", "kbsconfig/own", "--timeout=60s")

    assert plot.see("kbsconfig/own") is None


def test_a_kbs_config_whose_deployment_is_gone_already_goes_at_once(estate: Estate, plot: Plot) -> None:
    plot.apply(*_own_parts(), kbs_config("own", kbsConfigMapName="settings", kbsAuthSecretName="auth"))
    plot.until_told("kbsconfig/own", "Ready", "RollingOut")

    assert estate.keeper.stop() == 0
    plot.kubectl("delete", DEPLOYMENT)
    plot.delete("kbsconfig/own")
    assert plot.see("kbsconfig/own")["metadata"]["deletionTimestamp"]
    estate.keeper.start()
    plot.kubectl("wait", "--for=delete", "kbsconfig/own", "--timeout=60s")

    assert plot.see(DEPLOYMENT) is None


def _own_parts() -> tuple[dict[str, object], ...]:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    return {**settings, "data": {"kbs-config.toml": ""}}, secret("auth")
