"""What people and other programs do to what is generated without meaning any harm."""

import json
from typing import Any

from tests.cluster.trustee.manifests import encoded, restricted, secret, tls_secrets, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, told

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)
MANAGED_BY = "app.kubernetes.io/managed-by"


def _template(trustee: TrusteeNamespace) -> Any:
    return trustee.see(DEPLOYMENT)["spec"]["template"]


def test_a_requested_restart_is_not_reverted(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    trustee.kubectl("rollout", "restart", DEPLOYMENT)
    trustee.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 2}})
    trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 2)

    assert "kubectl.kubernetes.io/restartedAt" in _template(trustee)["metadata"]["annotations"]
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_a_container_that_another_writer_adds_is_removed(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    """A container beside the keys could read them."""
    trustee.settle(trustee_config())
    added = {"spec": {"template": {"spec": {"containers": [{"name": "mine", "image": "mine:1"}]}}}}

    trustee.kubectl("patch", DEPLOYMENT, "-p", json.dumps(added))
    trustee.until(DEPLOYMENT, lambda found: found["metadata"]["generation"] == 3)

    assert [one["name"] for one in _template(trustee)["spec"]["containers"]] == ["kbs"]
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_a_label_that_is_taken_off_a_secret_comes_back_and_its_values_stay(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = trustee.see("secret/tc-auth-secret")

    trustee.kubectl("label", "secret/tc-auth-secret", f"{MANAGED_BY}-", "mine=1")
    after = trustee.until("secret/tc-auth-secret", lambda found: MANAGED_BY in found["metadata"]["labels"])

    assert after["data"] == before["data"]
    assert after["metadata"]["labels"] == {**before["metadata"]["labels"], "mine": "1"}
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL, "secret/tc-auth-secret")


def test_a_text_that_is_removed_comes_back_and_what_is_beside_it_stays(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    target = "configmap/tc-resource-policy"
    before = trustee.see(target)["data"]

    trustee.patch(target, data={"resource-policy.rego": None, "mine": "1"})

    assert trustee.until(target, lambda found: "resource-policy.rego" in found["data"])["data"] == {
        **before,
        "mine": "1",
    }
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL, target)


def test_a_child_without_an_owner_is_owned_again(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    uid = trustee.see(TRUSTEE)["metadata"]["uid"]

    trustee.edit("configmap/tc-resource-policy", "remove", "/metadata/ownerReferences")
    found = trustee.until("configmap/tc-resource-policy", lambda found: "ownerReferences" in found["metadata"])

    assert [one["uid"] for one in found["metadata"]["ownerReferences"]] == [uid]
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL, "configmap/tc-resource-policy")


def test_another_tls_profile_reaches_edited_settings(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), restricted())
    target = "configmap/tc-kbs-config"
    text = trustee.see(target)["data"]["kbs-config.toml"].replace("worker_count = 4", "worker_count = 8  # mine")
    trustee.patch(target, data={"kbs-config.toml": text})
    trustee.until_told(TRUSTEE, "Edited", "EditsKept")
    before = trustee.trace()

    trustee.patch(TRUSTEE, spec={"tlsConfig": {"profile": "modern"}})
    trustee.until(target, lambda found: 'tls_profile = "modern"' in found["data"]["kbs-config.toml"])

    changed = text.replace("intermediate", "modern")
    assert trustee.see(target)["data"]["kbs-config.toml"] == changed
    trustee.until(DEPLOYMENT, lambda _: trustee.trace() != before)
    trustee.until_rolling_out()
    assert told(trustee.see(TRUSTEE), "Edited").reason == "EditsKept"
    trustee_cluster.hold(trustee, *ALL, target)


def test_another_type_of_service_is_followed_there_and_back(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config(kbsServiceType="LoadBalancer"))
    port = trustee.see(SERVICE)["spec"]["ports"][0]["nodePort"]

    trustee.patch(TRUSTEE, spec={"kbsServiceType": "NodePort"})
    trustee.until(SERVICE, lambda found: found["spec"]["type"] == "NodePort")
    kept = trustee.see(SERVICE)["spec"]["ports"][0]["nodePort"]
    trustee.patch(TRUSTEE, spec={"kbsServiceType": None})
    trustee.until(SERVICE, lambda found: found["spec"]["type"] == "ClusterIP")

    assert kept == port
    assert "nodePort" not in trustee.see(SERVICE)["spec"]["ports"][0]
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_a_served_secret_that_is_not_there_yet_is_waited_for_and_the_pods_stay(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = trustee.version(DEPLOYMENT)

    trustee.edit(KBS, "add", "/spec/kbsSecretResources/-", "later")
    said = trustee.until_told(KBS, "Ready", "DependencyNotFound")
    assert said.message == "not found: Secret later: create them in the same namespace"
    assert trustee.version(DEPLOYMENT) == before

    trustee.apply(secret("later", key=encoded("a key")))
    trustee.until_rolling_out()
    volumes = [one["name"] for one in _template(trustee)["spec"]["volumes"]]
    assert volumes[-4:] == ["attestation-status", "later", "rvps-dir", "reference-values"]
    trustee_cluster.hold(trustee, *ALL)


def test_a_secret_whose_name_no_volume_can_have_is_served_all_the_same(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(secret("my.keys", key=encoded("a key")), trustee_config())

    trustee.edit(KBS, "add", "/spec/kbsSecretResources/-", "my.keys")
    trustee.until(DEPLOYMENT, lambda found: "my.keys" in str(found["spec"]["template"]["spec"]["volumes"]))

    (converter,) = _template(trustee)["spec"]["initContainers"]
    assert [one["mountPath"] for one in converter["volumeMounts"]][-1].endswith("/my.keys")
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_what_the_cluster_refuses_is_told_and_mended(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = trustee.version(DEPLOYMENT)

    trustee.patch(KBS, spec={"KbsEnvVars": {"A=B": "no variable can be called that"}})
    said = trustee.until(KBS, lambda found: "A=B" in told(found, "Ready").message)
    assert told(said, "Ready").reason == "UpdateFailed"
    assert trustee.until_noted(KBS, "DeploymentUpdateFailed")["type"] == "Warning"
    assert trustee.version(DEPLOYMENT) == before

    trustee.patch(KBS, spec={"KbsEnvVars": {"A=B": None}})
    trustee.until_rolling_out()
    assert told(trustee.see(TRUSTEE), "Edited").status == "False"
    trustee_cluster.hold(trustee, *ALL)


def test_a_name_that_is_too_long_for_a_label_is_told(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    name = "a" * 70
    trustee.apply(trustee_config(name))

    said = trustee.until(f"trusteeconfig/{name}", lambda found: "63 " in told(found, "Ready").message)
    assert told(said, "Ready").status == "False"
    trustee_cluster.hold(trustee, f"configmap/{name}-kbs-config")


def test_a_trustee_that_is_paused_is_left_to_people(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    trustee.kubectl("annotate", TRUSTEE, "setpoint.dev/management=paused")
    trustee.until_told(TRUSTEE, "Ready", "Paused")

    trustee.patch(KBS, spec={"kbsAuthSecretName": "attestation-status"})
    trustee.until(DEPLOYMENT, lambda _: "attestation-status" in str(trustee.trace()).split(":")[5])
    assert trustee.see(KBS)["spec"]["kbsAuthSecretName"] == "attestation-status"

    trustee.kubectl("annotate", TRUSTEE, "setpoint.dev/management-")
    trustee.until(KBS, lambda found: found["spec"]["kbsAuthSecretName"] == "tc-auth-secret")
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)
