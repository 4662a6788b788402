"""What people do to what is generated: each edit ends as the rules say, and then everything stands still."""

from typing import Any

from tests.cluster.trustee.manifests import encoded, restricted, secret, tls_secrets, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, told

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def _kept(trustee: TrusteeNamespace) -> str:
    """What the TrusteeConfig says of edits that it kept, as soon as it does."""
    message = trustee.until_told(TRUSTEE, "Edited", "EditsKept").message
    return message.replace(trustee.namespace, "here")


def test_another_number_of_replicas_is_kept(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    trustee.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 3}})

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.KbsDeploymentSpec.replicas"
    trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 3)
    trustee.until_rolling_out()
    assert trustee.see(KBS)["spec"]["KbsDeploymentSpec"] == {"replicas": 3}
    trustee_cluster.hold(trustee, *ALL)


def test_another_variable_is_kept(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    trustee.patch(KBS, spec={"KbsEnvVars": {"HTTPS_PROXY": "http://proxy:3128"}})

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.KbsEnvVars.HTTPS_PROXY"
    expected = {"HTTPS_PROXY": "http://proxy:3128", "RUST_LOG": "debug"}
    trustee.until(DEPLOYMENT, lambda _: trustee.env() == expected)
    trustee.until_rolling_out()
    assert trustee.see(KBS)["spec"]["KbsEnvVars"] == expected
    trustee_cluster.hold(trustee, *ALL)


def test_a_generated_variable_that_is_removed_stays_removed(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())

    trustee.edit(KBS, "remove", "/spec/KbsEnvVars/RUST_LOG")

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.KbsEnvVars.RUST_LOG"
    trustee.until(DEPLOYMENT, lambda _: trustee.env() == {})
    trustee.until_rolling_out()
    assert not trustee.see(KBS)["spec"].get("KbsEnvVars")
    trustee_cluster.hold(trustee, *ALL)


def test_a_secret_that_is_added_to_be_served_is_kept(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(secret("mine", key=encoded("a key")), trustee_config())

    trustee.edit(KBS, "add", "/spec/kbsSecretResources/-", "mine")

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.kbsSecretResources.mine"
    trustee.until(DEPLOYMENT, lambda found: "mine" in _volumes(found))
    trustee.until_rolling_out()
    assert trustee.see(KBS)["spec"]["kbsSecretResources"] == ["attestation-status", "mine"]
    trustee_cluster.hold(trustee, *ALL)


def _volumes(deployment: Any) -> list[str]:
    return [one["name"] for one in deployment["spec"]["template"]["spec"]["volumes"]]


def test_a_served_secret_that_is_taken_away_stays_away(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())

    trustee.edit(KBS, "remove", "/spec/kbsSecretResources/0")

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.kbsSecretResources.attestation-status"
    trustee.until(DEPLOYMENT, lambda found: "attestation-status" not in _volumes(found))
    trustee.until_rolling_out()
    assert not trustee.see(KBS)["spec"].get("kbsSecretResources")
    trustee_cluster.hold(trustee, *ALL)


def test_a_managed_field_is_put_back_and_it_is_said(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    trustee.patch(KBS, spec={"kbsAuthSecretName": "my-own"})
    note = trustee.until_noted(TRUSTEE, "Reverted")

    assert (note["type"], note["message"].replace(trustee.namespace, "here")) == (
        "Warning",
        "1 reverted: KbsConfig here/tc-kbs-config spec.kbsAuthSecretName: put back to what is generated: "
        "this field is managed, so change the owner instead",
    )
    assert trustee.see(KBS)["spec"]["kbsAuthSecretName"] == "tc-auth-secret"
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_without_a_memory_what_is_removed_comes_back(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    two_way = trustee_config()
    two_way["metadata"]["annotations"] = {"setpoint.dev/merge": "two-way"}
    trustee.settle(two_way)

    trustee.patch(KBS, spec={"KbsEnvVars": {"MINE": "1"}})
    trustee.until_told(TRUSTEE, "Edited", "EditsKept")
    trustee.edit(KBS, "remove", "/spec/KbsEnvVars/RUST_LOG")
    trustee.until(KBS, lambda found: found["spec"]["KbsEnvVars"] == {"MINE": "1", "RUST_LOG": "debug"})

    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_a_text_that_is_edited_is_kept_and_rolls_the_pods(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = trustee.trace()

    trustee.patch(
        "configmap/tc-resource-policy", data={"resource-policy.rego": "package policy\ndefault allow = false\n"}
    )

    assert _kept(trustee) == '1 preserved: ConfigMap here/tc-resource-policy data["resource-policy.rego"]'
    trustee.until(DEPLOYMENT, lambda _: trustee.trace() != before)
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL, "configmap/tc-resource-policy")


# --- The owner changes as well ----------------------------------------------------------------------------------------


def test_unedited_contents_follow_another_profile(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(*tls_secrets(), trustee_config())
    policy = trustee.see("configmap/tc-resource-policy")["data"]

    trustee.apply(restricted())
    trustee.until(KBS, lambda found: not found["spec"].get("KbsEnvVars"))
    trustee.until_rolling_out()

    assert trustee.see("configmap/tc-resource-policy")["data"] != policy
    assert "insecure_http = false" in trustee.see("configmap/tc-kbs-config")["data"]["kbs-config.toml"]
    assert trustee.see(KBS)["spec"]["kbsHttpsKeySecretName"] == "tc-https-key-secret"
    assert told(trustee.see(TRUSTEE), "Edited").status == "False"
    assert "conflicts" not in trustee.see(TRUSTEE)["status"]
    trustee_cluster.hold(trustee, *ALL, "configmap/tc-resource-policy", "configmap/tc-kbs-config")


def test_edited_contents_are_kept_and_reported_as_conflicts(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), trustee_config())
    mine = "package policy\ndefault allow = false\n"
    trustee.patch("configmap/tc-resource-policy", data={"resource-policy.rego": mine})
    trustee.patch(KBS, spec={"KbsEnvVars": {"RUST_LOG": "trace"}})
    trustee.until(TRUSTEE, lambda found: told(found, "Edited").message.startswith("2 preserved"))

    trustee.apply(restricted())
    conflict = trustee.until_told(TRUSTEE, "Edited", "Conflicting")
    trustee.until_rolling_out()

    assert conflict.message.replace(trustee.namespace, "here") == (
        '2 conflicting: ConfigMap here/tc-resource-policy data["resource-policy.rego"], '
        "KbsConfig here/tc-kbs-config spec.KbsEnvVars.RUST_LOG"
    )
    assert [one.replace(trustee.namespace, "here") for one in trustee.see(TRUSTEE)["status"]["conflicts"]] == [
        'ConfigMap here/tc-resource-policy data["resource-policy.rego"]',
        "KbsConfig here/tc-kbs-config spec.KbsEnvVars.RUST_LOG",
    ]
    assert trustee.see("configmap/tc-resource-policy")["data"] == {"resource-policy.rego": mine}
    assert trustee.see(KBS)["spec"]["KbsEnvVars"] == {"RUST_LOG": "trace"}
    assert "insecure_http = false" in trustee.see("configmap/tc-kbs-config")["data"]["kbs-config.toml"]
    trustee_cluster.hold(trustee, *ALL, "configmap/tc-resource-policy", "configmap/tc-kbs-config")


def test_new_certificates_are_passed_on_and_roll_the_pods(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), restricted())
    before = trustee.trace()

    trustee.apply(*tls_secrets("second"))
    expected = encoded("second certificate of https-tls")
    trustee.until("secret/tc-https-cert-secret", lambda found: found["data"] == {"certificate": expected})
    expected = encoded("second key of token-tls")
    trustee.until("secret/tc-attestation-key-secret", lambda found: found["data"] == {"token.key": expected})
    trustee.until(DEPLOYMENT, lambda _: trustee.trace() != before)

    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, TRUSTEE, KBS, "secret/tc-https-cert-secret", "secret/tc-https-key-secret")


def test_other_values_of_a_served_secret_roll_the_pods(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = trustee.trace()

    trustee.patch("secret/attestation-status", data={"status": encoded("other")})
    trustee.until(DEPLOYMENT, lambda _: trustee.trace() != before)

    assert trustee.see("secret/attestation-status")["data"] == {"status": encoded("other")}
    assert encoded("other") not in str(trustee.see(TRUSTEE)["status"])
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL, "secret/attestation-status")
