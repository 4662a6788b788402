"""What people and other programs do to what is generated without meaning any harm."""

import json
from typing import Any

from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import encoded, restricted, secret, tls_secrets, trustee_config
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot, told

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)
MANAGED_BY = "app.kubernetes.io/managed-by"


def _template(plot: Plot) -> Any:
    return plot.see(DEPLOYMENT)["spec"]["template"]


def test_a_restart_that_somebody_asks_for_is_not_taken_back(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())

    plot.kubectl("rollout", "restart", DEPLOYMENT)
    plot.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 2}})
    plot.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 2)

    assert "kubectl.kubernetes.io/restartedAt" in _template(plot)["metadata"]["annotations"]
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_a_container_that_somebody_adds_is_taken_away_again(estate: Estate, plot: Plot) -> None:
    """Whoever runs beside the keys could read them."""
    plot.settle(trustee_config())
    added = {"spec": {"template": {"spec": {"containers": [{"name": "mine", "image": "mine:1"}]}}}}

    plot.kubectl("patch", DEPLOYMENT, "-p", json.dumps(added))
    plot.until(DEPLOYMENT, lambda found: found["metadata"]["generation"] == 3)

    assert [one["name"] for one in _template(plot)["spec"]["containers"]] == ["kbs"]
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_a_label_that_is_taken_off_a_secret_comes_back_and_its_values_stay(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    before = plot.see("secret/tc-auth-secret")

    plot.kubectl("label", "secret/tc-auth-secret", f"{MANAGED_BY}-", "mine=1")
    after = plot.until("secret/tc-auth-secret", lambda found: MANAGED_BY in found["metadata"]["labels"])

    assert after["data"] == before["data"]
    assert after["metadata"]["labels"] == {**before["metadata"]["labels"], "mine": "1"}
    plot.until_rolling_out()
    estate.hold(plot, *ALL, "secret/tc-auth-secret")


def test_a_text_that_is_removed_comes_back_and_what_is_beside_it_stays(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    target = "configmap/tc-resource-policy"
    before = plot.see(target)["data"]

    plot.patch(target, data={"resource-policy.rego": None, "mine": "1"})

    assert plot.until(target, lambda found: "resource-policy.rego" in found["data"])["data"] == {**before, "mine": "1"}
    plot.until_rolling_out()
    estate.hold(plot, *ALL, target)


def test_a_child_without_an_owner_is_owned_again(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    uid = plot.see(TRUSTEE)["metadata"]["uid"]

    plot.edit("configmap/tc-resource-policy", "remove", "/metadata/ownerReferences")
    found = plot.until("configmap/tc-resource-policy", lambda found: "ownerReferences" in found["metadata"])

    assert [one["uid"] for one in found["metadata"]["ownerReferences"]] == [uid]
    plot.until_rolling_out()
    estate.hold(plot, *ALL, "configmap/tc-resource-policy")


def test_another_tls_profile_reaches_settings_that_somebody_edited(estate: Estate, plot: Plot) -> None:
    plot.settle(*tls_secrets(), restricted())
    target = "configmap/tc-kbs-config"
    text = plot.see(target)["data"]["kbs-config.toml"].replace("worker_count = 4", "worker_count = 8  # mine")
    plot.patch(target, data={"kbs-config.toml": text})
    plot.until_told(TRUSTEE, "Edited", "EditsKept")
    before = plot.trace()

    plot.patch(TRUSTEE, spec={"tlsConfig": {"profile": "modern"}})
    plot.until(target, lambda found: 'tls_profile = "modern"' in found["data"]["kbs-config.toml"])

    changed = text.replace("intermediate", "modern")
    assert plot.see(target)["data"]["kbs-config.toml"] == changed
    plot.until(DEPLOYMENT, lambda _: plot.trace() != before)
    plot.until_rolling_out()
    assert told(plot.see(TRUSTEE), "Edited").reason == "EditsKept"
    estate.hold(plot, *ALL, target)


def test_another_type_of_service_is_followed_there_and_back(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config(kbsServiceType="LoadBalancer"))
    port = plot.see(SERVICE)["spec"]["ports"][0]["nodePort"]

    plot.patch(TRUSTEE, spec={"kbsServiceType": "NodePort"})
    plot.until(SERVICE, lambda found: found["spec"]["type"] == "NodePort")
    kept = plot.see(SERVICE)["spec"]["ports"][0]["nodePort"]
    plot.patch(TRUSTEE, spec={"kbsServiceType": None})
    plot.until(SERVICE, lambda found: found["spec"]["type"] == "ClusterIP")

    assert kept == port
    assert "nodePort" not in plot.see(SERVICE)["spec"]["ports"][0]
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_a_served_secret_that_is_not_there_yet_is_waited_for_and_the_pods_stay(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    before = plot.version(DEPLOYMENT)

    plot.edit(KBS, "add", "/spec/kbsSecretResources/-", "later")
    said = plot.until_told(KBS, "Ready", "DependencyNotFound")
    assert said.message == "not found: Secret later: create them in the same namespace"
    assert plot.version(DEPLOYMENT) == before

    plot.apply(secret("later", key=encoded("a key")))
    plot.until_rolling_out()
    volumes = [one["name"] for one in _template(plot)["spec"]["volumes"]]
    assert volumes[-4:] == ["attestation-status", "later", "rvps-dir", "reference-values"]
    estate.hold(plot, *ALL)


def test_a_secret_whose_name_no_volume_can_have_is_served_all_the_same(estate: Estate, plot: Plot) -> None:
    plot.settle(secret("my.keys", key=encoded("a key")), trustee_config())

    plot.edit(KBS, "add", "/spec/kbsSecretResources/-", "my.keys")
    plot.until(DEPLOYMENT, lambda found: "my.keys" in str(found["spec"]["template"]["spec"]["volumes"]))

    (converter,) = _template(plot)["spec"]["initContainers"]
    assert [one["mountPath"] for one in converter["volumeMounts"]][-1].endswith("/my.keys")
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_what_the_cluster_refuses_is_told_and_mended(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    before = plot.version(DEPLOYMENT)

    plot.patch(KBS, spec={"KbsEnvVars": {"A=B": "no variable can be called that"}})
    said = plot.until(KBS, lambda found: "A=B" in told(found, "Ready").message)
    assert told(said, "Ready").reason == "UpdateFailed"
    assert plot.until_noted(KBS, "DeploymentUpdateFailed")["type"] == "Warning"
    assert plot.version(DEPLOYMENT) == before

    plot.patch(KBS, spec={"KbsEnvVars": {"A=B": None}})
    plot.until_rolling_out()
    assert told(plot.see(TRUSTEE), "Edited").status == "False"
    estate.hold(plot, *ALL)


def test_a_name_that_is_too_long_for_a_label_is_told(estate: Estate, plot: Plot) -> None:
    name = "a" * 70
    plot.apply(trustee_config(name))

    said = plot.until(f"trusteeconfig/{name}", lambda found: "63 " in told(found, "Ready").message)
    assert told(said, "Ready").status == "False"
    estate.hold(plot, f"configmap/{name}-kbs-config")


def test_a_trustee_that_is_paused_is_left_to_people(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    plot.kubectl("annotate", TRUSTEE, "setpoint.dev/management=paused")
    plot.until_told(TRUSTEE, "Ready", "Paused")

    plot.patch(KBS, spec={"kbsAuthSecretName": "attestation-status"})
    plot.until(DEPLOYMENT, lambda _: "attestation-status" in str(plot.trace()).split(":")[5])
    assert plot.see(KBS)["spec"]["kbsAuthSecretName"] == "attestation-status"

    plot.kubectl("annotate", TRUSTEE, "setpoint.dev/management-")
    plot.until(KBS, lambda found: found["spec"]["kbsAuthSecretName"] == "tc-auth-secret")
    plot.until_rolling_out()
    estate.hold(plot, *ALL)
