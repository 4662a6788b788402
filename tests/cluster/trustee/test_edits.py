"""Edits of children: each is kept, reverted or reported as a conflict, and nothing is written afterwards."""

from typing import Any

from tests.cluster.trustee.manifests import encoded, restricted, secret, tls_secrets, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, condition_of

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def _kept(trustee: TrusteeNamespace) -> str:
    """The message of the TrusteeConfig about kept edits, once there is one."""
    message = trustee.until_condition(TRUSTEE, "Edited", "EditsKept").message
    return message.replace(trustee.namespace, "here")


def test_an_edited_number_of_replicas_is_kept(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    trustee.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 3}})

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.KbsDeploymentSpec.replicas"
    trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 3)
    trustee.until_rolling_out()
    assert trustee.get(KBS)["spec"]["KbsDeploymentSpec"] == {"replicas": 3}
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_an_added_variable_is_kept(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    trustee.patch(KBS, spec={"KbsEnvVars": {"HTTPS_PROXY": "http://proxy:3128"}})

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.KbsEnvVars.HTTPS_PROXY"
    expected = {"HTTPS_PROXY": "http://proxy:3128", "RUST_LOG": "debug"}
    trustee.until(DEPLOYMENT, lambda _: trustee.env() == expected)
    trustee.until_rolling_out()
    assert trustee.get(KBS)["spec"]["KbsEnvVars"] == expected
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_removed_variable_stays_removed(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    trustee.edit(KBS, "remove", "/spec/KbsEnvVars/RUST_LOG")

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.KbsEnvVars.RUST_LOG"
    trustee.until(DEPLOYMENT, lambda _: trustee.env() == {})
    trustee.until_rolling_out()
    assert not trustee.get(KBS)["spec"].get("KbsEnvVars")
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_an_added_secret_resource_is_kept(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(secret("mine", key=encoded("a key")), trustee_config())

    trustee.edit(KBS, "add", "/spec/kbsSecretResources/-", "mine")

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.kbsSecretResources.mine"
    trustee.until(DEPLOYMENT, lambda found: "mine" in _volumes(found))
    trustee.until_rolling_out()
    assert trustee.get(KBS)["spec"]["kbsSecretResources"] == ["attestation-status", "mine"]
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def _volumes(deployment: Any) -> list[str]:
    return [one["name"] for one in deployment["spec"]["template"]["spec"]["volumes"]]


def test_a_removed_secret_resource_stays_removed(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    trustee.edit(KBS, "remove", "/spec/kbsSecretResources/0")

    assert _kept(trustee) == "1 preserved: KbsConfig here/tc-kbs-config spec.kbsSecretResources.attestation-status"
    trustee.until(DEPLOYMENT, lambda found: "attestation-status" not in _volumes(found))
    trustee.until_rolling_out()
    assert not trustee.get(KBS)["spec"].get("kbsSecretResources")
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_an_edit_of_a_managed_field_is_reverted_with_an_event(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())

    trustee.patch(KBS, spec={"kbsAuthSecretName": "my-own"})
    event = trustee.until_event(TRUSTEE, "Reverted")

    assert (event["type"], event["message"].replace(trustee.namespace, "here")) == (
        "Warning",
        "1 reverted: KbsConfig here/tc-kbs-config spec.kbsAuthSecretName: put back to what is generated: "
        "this field is managed, so change the owner instead",
    )
    assert trustee.get(KBS)["spec"]["kbsAuthSecretName"] == "tc-auth-secret"
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_two_way_merge_restores_a_removed_variable(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    two_way = trustee_config()
    two_way["metadata"]["annotations"] = {"setpoint.dev/merge": "two-way"}
    trustee.settle(two_way)

    trustee.patch(KBS, spec={"KbsEnvVars": {"MINE": "1"}})
    trustee.until_condition(TRUSTEE, "Edited", "EditsKept")
    trustee.edit(KBS, "remove", "/spec/KbsEnvVars/RUST_LOG")
    trustee.until(KBS, lambda found: found["spec"]["KbsEnvVars"] == {"MINE": "1", "RUST_LOG": "debug"})

    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_an_edited_policy_is_kept_and_rolls_the_pods(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = trustee.config_versions()

    trustee.patch(
        "configmap/tc-resource-policy", data={"resource-policy.rego": "package policy\ndefault allow = false\n"}
    )

    assert _kept(trustee) == '1 preserved: ConfigMap here/tc-resource-policy data["resource-policy.rego"]'
    trustee.until(DEPLOYMENT, lambda _: trustee.config_versions() != before)
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "configmap/tc-resource-policy")


# --- Changes of the owner ---------------------------------------------------------------------------------------------


def test_unedited_children_follow_another_profile_in_one_rollout(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), trustee_config())
    policy = trustee.get("configmap/tc-resource-policy")["data"]
    generation = trustee.get(DEPLOYMENT)["metadata"]["generation"]

    trustee.apply(restricted())
    trustee.until(KBS, lambda found: not found["spec"].get("KbsEnvVars"))
    trustee.until_rolling_out()

    assert trustee.get("configmap/tc-resource-policy")["data"] != policy
    assert "insecure_http = false" in trustee.get("configmap/tc-kbs-config")["data"]["kbs-config.toml"]
    assert trustee.get(KBS)["spec"]["kbsHttpsKeySecretName"] == "tc-https-key-secret"
    assert condition_of(trustee.get(TRUSTEE), "Edited").status == "False"
    assert "conflicts" not in trustee.get(TRUSTEE)["status"]
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "configmap/tc-resource-policy", "configmap/tc-kbs-config")
    assert trustee.get(DEPLOYMENT)["metadata"]["generation"] == generation + 1


def test_edited_fields_are_kept_and_reported_as_conflicts(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), trustee_config())
    mine = "package policy\ndefault allow = false\n"
    trustee.patch("configmap/tc-resource-policy", data={"resource-policy.rego": mine})
    trustee.patch(KBS, spec={"KbsEnvVars": {"RUST_LOG": "trace"}})
    trustee.until(TRUSTEE, lambda found: condition_of(found, "Edited").message.startswith("2 preserved"))

    trustee.apply(restricted())
    conflict = trustee.until_condition(TRUSTEE, "Edited", "Conflicting")
    trustee.until_rolling_out()

    assert conflict.message.replace(trustee.namespace, "here") == (
        '2 conflicting: ConfigMap here/tc-resource-policy data["resource-policy.rego"], '
        "KbsConfig here/tc-kbs-config spec.KbsEnvVars.RUST_LOG"
    )
    assert [one.replace(trustee.namespace, "here") for one in trustee.get(TRUSTEE)["status"]["conflicts"]] == [
        'ConfigMap here/tc-resource-policy data["resource-policy.rego"]',
        "KbsConfig here/tc-kbs-config spec.KbsEnvVars.RUST_LOG",
    ]
    assert trustee.get("configmap/tc-resource-policy")["data"] == {"resource-policy.rego": mine}
    assert trustee.get(KBS)["spec"]["KbsEnvVars"] == {"RUST_LOG": "trace"}
    assert "insecure_http = false" in trustee.get("configmap/tc-kbs-config")["data"]["kbs-config.toml"]
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "configmap/tc-resource-policy", "configmap/tc-kbs-config")


def test_new_certificates_are_copied_and_roll_the_pods(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), restricted())
    before = trustee.config_versions()

    trustee.apply(*tls_secrets("second"))
    expected = encoded("second certificate of https-tls")
    trustee.until("secret/tc-https-cert-secret", lambda found: found["data"] == {"certificate": expected})
    expected = encoded("second key of token-tls")
    trustee.until("secret/tc-attestation-key-secret", lambda found: found["data"] == {"token.key": expected})
    trustee.until(DEPLOYMENT, lambda _: trustee.config_versions() != before)

    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(
        trustee, TRUSTEE, KBS, "secret/tc-https-cert-secret", "secret/tc-https-key-secret"
    )


def test_a_changed_secret_resource_rolls_the_pods(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    before = trustee.config_versions()

    trustee.patch("secret/attestation-status", data={"status": encoded("other")})
    trustee.until(DEPLOYMENT, lambda _: trustee.config_versions() != before)

    assert trustee.get("secret/attestation-status")["data"] == {"status": encoded("other")}
    assert encoded("other") not in str(trustee.get(TRUSTEE)["status"])
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "secret/attestation-status")
