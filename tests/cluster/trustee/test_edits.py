"""What people do to what is generated: each edit ends as the rules say, and then everything stands still."""

from typing import Any

from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import encoded, restricted, secret, tls_secrets, trustee_config
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot, told

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def _kept(plot: Plot) -> str:
    """What the TrusteeConfig says of edits that it kept, as soon as it does."""
    message = plot.until_told(TRUSTEE, "Edited", "EditsKept").message
    return message.replace(plot.namespace, "here")


def test_another_number_of_replicas_is_kept(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())

    plot.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 3}})

    assert _kept(plot) == "1 preserved: KbsConfig here/tc-kbs-config spec.KbsDeploymentSpec.replicas"
    plot.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 3)
    plot.until_rolling_out()
    assert plot.see(KBS)["spec"]["KbsDeploymentSpec"] == {"replicas": 3}
    estate.hold(plot, *ALL)


def test_another_variable_is_kept(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())

    plot.patch(KBS, spec={"KbsEnvVars": {"HTTPS_PROXY": "http://proxy:3128"}})

    assert _kept(plot) == "1 preserved: KbsConfig here/tc-kbs-config spec.KbsEnvVars.HTTPS_PROXY"
    expected = {"HTTPS_PROXY": "http://proxy:3128", "RUST_LOG": "debug"}
    plot.until(DEPLOYMENT, lambda _: plot.env() == expected)
    plot.until_rolling_out()
    assert plot.see(KBS)["spec"]["KbsEnvVars"] == expected
    estate.hold(plot, *ALL)


def test_a_generated_variable_that_is_removed_stays_removed(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())

    plot.edit(KBS, "remove", "/spec/KbsEnvVars/RUST_LOG")

    assert _kept(plot) == "1 preserved: KbsConfig here/tc-kbs-config spec.KbsEnvVars.RUST_LOG"
    plot.until(DEPLOYMENT, lambda _: plot.env() == {})
    plot.until_rolling_out()
    assert not plot.see(KBS)["spec"].get("KbsEnvVars")
    estate.hold(plot, *ALL)


def test_a_secret_that_is_added_to_be_served_is_kept(estate: Estate, plot: Plot) -> None:
    plot.settle(secret("mine", key=encoded("a key")), trustee_config())

    plot.edit(KBS, "add", "/spec/kbsSecretResources/-", "mine")

    assert _kept(plot) == "1 preserved: KbsConfig here/tc-kbs-config spec.kbsSecretResources.mine"
    plot.until(DEPLOYMENT, lambda found: "mine" in _volumes(found))
    plot.until_rolling_out()
    assert plot.see(KBS)["spec"]["kbsSecretResources"] == ["attestation-status", "mine"]
    estate.hold(plot, *ALL)


def _volumes(deployment: Any) -> list[str]:
    return [one["name"] for one in deployment["spec"]["template"]["spec"]["volumes"]]


def test_a_served_secret_that_is_taken_away_stays_away(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())

    plot.edit(KBS, "remove", "/spec/kbsSecretResources/0")

    assert _kept(plot) == "1 preserved: KbsConfig here/tc-kbs-config spec.kbsSecretResources.attestation-status"
    plot.until(DEPLOYMENT, lambda found: "attestation-status" not in _volumes(found))
    plot.until_rolling_out()
    assert not plot.see(KBS)["spec"].get("kbsSecretResources")
    estate.hold(plot, *ALL)


def test_a_managed_field_is_put_back_and_it_is_said(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())

    plot.patch(KBS, spec={"kbsAuthSecretName": "my-own"})
    note = plot.until_noted(TRUSTEE, "Reverted")

    assert (note["type"], note["message"].replace(plot.namespace, "here")) == (
        "Warning",
        "1 reverted: KbsConfig here/tc-kbs-config spec.kbsAuthSecretName: put back to what is generated: "
        "this field is managed, so change the owner instead",
    )
    assert plot.see(KBS)["spec"]["kbsAuthSecretName"] == "tc-auth-secret"
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_without_a_memory_what_is_removed_comes_back(estate: Estate, plot: Plot) -> None:
    two_way = trustee_config()
    two_way["metadata"]["annotations"] = {"setpoint.dev/merge": "two-way"}
    plot.settle(two_way)

    plot.patch(KBS, spec={"KbsEnvVars": {"MINE": "1"}})
    plot.until_told(TRUSTEE, "Edited", "EditsKept")
    plot.edit(KBS, "remove", "/spec/KbsEnvVars/RUST_LOG")
    plot.until(KBS, lambda found: found["spec"]["KbsEnvVars"] == {"MINE": "1", "RUST_LOG": "debug"})

    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_a_text_that_is_edited_is_kept_and_rolls_the_pods(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    before = plot.trace()

    plot.patch("configmap/tc-resource-policy", data={"resource-policy.rego": "package policy\ndefault allow = false\n"})

    assert _kept(plot) == '1 preserved: ConfigMap here/tc-resource-policy data["resource-policy.rego"]'
    plot.until(DEPLOYMENT, lambda _: plot.trace() != before)
    plot.until_rolling_out()
    estate.hold(plot, *ALL, "configmap/tc-resource-policy")


# --- The owner changes as well ----------------------------------------------------------------------------------------


def test_contents_that_nobody_edited_follow_another_profile(estate: Estate, plot: Plot) -> None:
    plot.settle(*tls_secrets(), trustee_config())
    policy = plot.see("configmap/tc-resource-policy")["data"]

    plot.apply(restricted())
    plot.until(KBS, lambda found: not found["spec"].get("KbsEnvVars"))
    plot.until_rolling_out()

    assert plot.see("configmap/tc-resource-policy")["data"] != policy
    assert "insecure_http = false" in plot.see("configmap/tc-kbs-config")["data"]["kbs-config.toml"]
    assert plot.see(KBS)["spec"]["kbsHttpsKeySecretName"] == "tc-https-key-secret"
    assert told(plot.see(TRUSTEE), "Edited").status == "False"
    assert "conflicts" not in plot.see(TRUSTEE)["status"]
    estate.hold(plot, *ALL, "configmap/tc-resource-policy", "configmap/tc-kbs-config")


def test_contents_that_somebody_edited_are_kept_and_reported_as_conflicts(estate: Estate, plot: Plot) -> None:
    plot.settle(*tls_secrets(), trustee_config())
    mine = "package policy\ndefault allow = false\n"
    plot.patch("configmap/tc-resource-policy", data={"resource-policy.rego": mine})
    plot.patch(KBS, spec={"KbsEnvVars": {"RUST_LOG": "trace"}})
    plot.until(TRUSTEE, lambda found: told(found, "Edited").message.startswith("2 preserved"))

    plot.apply(restricted())
    conflict = plot.until_told(TRUSTEE, "Edited", "Conflicting")
    plot.until_rolling_out()

    assert conflict.message.replace(plot.namespace, "here") == (
        '2 conflicting: ConfigMap here/tc-resource-policy data["resource-policy.rego"], '
        "KbsConfig here/tc-kbs-config spec.KbsEnvVars.RUST_LOG"
    )
    assert [one.replace(plot.namespace, "here") for one in plot.see(TRUSTEE)["status"]["conflicts"]] == [
        'ConfigMap here/tc-resource-policy data["resource-policy.rego"]',
        "KbsConfig here/tc-kbs-config spec.KbsEnvVars.RUST_LOG",
    ]
    assert plot.see("configmap/tc-resource-policy")["data"] == {"resource-policy.rego": mine}
    assert plot.see(KBS)["spec"]["KbsEnvVars"] == {"RUST_LOG": "trace"}
    assert "insecure_http = false" in plot.see("configmap/tc-kbs-config")["data"]["kbs-config.toml"]
    estate.hold(plot, *ALL, "configmap/tc-resource-policy", "configmap/tc-kbs-config")


def test_new_certificates_are_passed_on_and_roll_the_pods(estate: Estate, plot: Plot) -> None:
    plot.settle(*tls_secrets(), restricted())
    before = plot.trace()

    plot.apply(*tls_secrets("second"))
    expected = encoded("second certificate of https-tls")
    plot.until("secret/tc-https-cert-secret", lambda found: found["data"] == {"certificate": expected})
    expected = encoded("second key of token-tls")
    plot.until("secret/tc-attestation-key-secret", lambda found: found["data"] == {"token.key": expected})
    plot.until(DEPLOYMENT, lambda _: plot.trace() != before)

    plot.until_rolling_out()
    estate.hold(plot, TRUSTEE, KBS, "secret/tc-https-cert-secret", "secret/tc-https-key-secret")


def test_other_values_of_a_served_secret_roll_the_pods(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    before = plot.trace()

    plot.patch("secret/attestation-status", data={"status": encoded("other")})
    plot.until(DEPLOYMENT, lambda _: plot.trace() != before)

    assert plot.see("secret/attestation-status")["data"] == {"status": encoded("other")}
    assert encoded("other") not in str(plot.see(TRUSTEE)["status"])
    plot.until_rolling_out()
    estate.hold(plot, *ALL, "secret/attestation-status")
