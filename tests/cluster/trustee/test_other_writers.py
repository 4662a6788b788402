"""Changes by other writers to children and to their dependencies."""

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster.polling import until
from tests.cluster.trustee.manifests import encoded, restricted, secret, tls_secrets, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, condition_of

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)
MANAGED_BY = "app.kubernetes.io/managed-by"


def _template(trustee: TrusteeNamespace) -> Any:
    return trustee.get(DEPLOYMENT)["spec"]["template"]


def test_a_requested_restart_is_not_reverted(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    trustee.kubectl("rollout", "restart", DEPLOYMENT)
    trustee.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 2}})
    trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 2)

    assert "kubectl.kubernetes.io/restartedAt" in _template(trustee)["metadata"]["annotations"]
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


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
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_removed_label_of_a_secret_is_restored_and_its_data_stays(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = trustee.get("secret/tc-auth-secret")

    trustee.kubectl("label", "secret/tc-auth-secret", f"{MANAGED_BY}-", "mine=1")
    after = trustee.until("secret/tc-auth-secret", lambda found: MANAGED_BY in found["metadata"]["labels"])

    assert after["data"] == before["data"]
    assert after["metadata"]["labels"] == {**before["metadata"]["labels"], "mine": "1"}
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "secret/tc-auth-secret")


def test_a_removed_key_of_a_config_map_is_restored_and_other_keys_stay(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    target = "configmap/tc-resource-policy"
    before = trustee.get(target)["data"]

    trustee.patch(target, data={"resource-policy.rego": None, "mine": "1"})

    assert trustee.until(target, lambda found: "resource-policy.rego" in found["data"])["data"] == {
        **before,
        "mine": "1",
    }
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL, target)


def test_a_removed_owner_reference_is_restored(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    uid = trustee.get(TRUSTEE)["metadata"]["uid"]

    trustee.edit("configmap/tc-resource-policy", "remove", "/metadata/ownerReferences")
    found = trustee.until("configmap/tc-resource-policy", lambda found: "ownerReferences" in found["metadata"])

    assert [one["uid"] for one in found["metadata"]["ownerReferences"]] == [uid]
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "configmap/tc-resource-policy")


def test_a_changed_tls_profile_is_merged_into_edited_settings(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), restricted())
    target = "configmap/tc-kbs-config"
    text = trustee.get(target)["data"]["kbs-config.toml"].replace("worker_count = 4", "worker_count = 8  # mine")
    trustee.patch(target, data={"kbs-config.toml": text})
    trustee.until_condition(TRUSTEE, "Edited", "EditsKept")
    before = trustee.config_versions()

    trustee.patch(TRUSTEE, spec={"tlsConfig": {"profile": "modern"}})
    trustee.until(target, lambda found: 'tls_profile = "modern"' in found["data"]["kbs-config.toml"])

    changed = text.replace("intermediate", "modern")
    assert trustee.get(target)["data"]["kbs-config.toml"] == changed
    trustee.until(DEPLOYMENT, lambda _: trustee.config_versions() != before)
    trustee.until_rolling_out()
    assert condition_of(trustee.get(TRUSTEE), "Edited").reason == "EditsKept"
    trustee_cluster.expect_no_more_writes(trustee, *ALL, target)


def test_the_service_type_is_changed_and_changed_back(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config(kbsServiceType="LoadBalancer"))
    port = trustee.get(SERVICE)["spec"]["ports"][0]["nodePort"]

    trustee.patch(TRUSTEE, spec={"kbsServiceType": "NodePort"})
    trustee.until(SERVICE, lambda found: found["spec"]["type"] == "NodePort")
    kept = trustee.get(SERVICE)["spec"]["ports"][0]["nodePort"]
    trustee.patch(TRUSTEE, spec={"kbsServiceType": None})
    trustee.until(SERVICE, lambda found: found["spec"]["type"] == "ClusterIP")

    assert kept == port
    assert "nodePort" not in trustee.get(SERVICE)["spec"]["ports"][0]
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_missing_secret_resource_is_waited_for_and_the_pods_stay(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = trustee.version(DEPLOYMENT)

    trustee.edit(KBS, "add", "/spec/kbsSecretResources/-", "later")
    condition = trustee.until_condition(KBS, "Ready", "DependencyNotFound")
    assert condition.message == "not found: Secret later: create them in the same namespace"
    assert trustee.version(DEPLOYMENT) == before

    trustee.apply(secret("later", key=encoded("a key")))
    trustee.until_rolling_out()
    volumes = [one["name"] for one in _template(trustee)["spec"]["volumes"]]
    assert volumes[-4:] == ["attestation-status", "later", "rvps-dir", "reference-values"]
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_secret_resource_with_a_dot_in_its_name_is_mounted(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(secret("my.keys", key=encoded("a key")), trustee_config())

    trustee.edit(KBS, "add", "/spec/kbsSecretResources/-", "my.keys")
    trustee.until(DEPLOYMENT, lambda found: "my.keys" in str(found["spec"]["template"]["spec"]["volumes"]))

    (converter,) = _template(trustee)["spec"]["initContainers"]
    assert [one["mountPath"] for one in converter["volumeMounts"]][-1].endswith("/my.keys")
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


@contextmanager
def _older_definition(cluster: TrusteeCluster) -> Iterator[None]:
    """A definition that does not check the names of environment variables."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kbsconfigs.confidentialcontainers.org"
    found = cluster.access.call("GET", path).body
    older = copy.deepcopy(found)
    spec = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["KbsEnvVars"]["x-kubernetes-validations"]
    assert cluster.access.call("PUT", path, older).status == 200
    try:
        yield
    finally:
        revision = cluster.access.call("GET", path).body["metadata"]["resourceVersion"]
        newer = {**found, "metadata": {**found["metadata"], "resourceVersion": revision}}
        assert cluster.access.call("PUT", path, newer).status == 200


def test_a_refused_child_is_reported_until_it_is_corrected(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = trustee.version(DEPLOYMENT)

    with _older_definition(trustee_cluster):
        wrong = json.dumps({"spec": {"KbsEnvVars": {"A=B": "no variable can be called that"}}})
        until(lambda: trustee.kubectl.run("patch", KBS, "--type=merge", "-p", wrong).returncode == 0)
    condition = trustee.until(KBS, lambda found: "A=B" in condition_of(found, "Ready").message)
    assert condition_of(condition, "Ready").reason == "UpdateFailed"
    assert trustee.until_event(KBS, "DeploymentUpdateFailed")["type"] == "Warning"
    assert trustee.version(DEPLOYMENT) == before

    trustee.patch(KBS, spec={"KbsEnvVars": {"A=B": None}})
    trustee.until_rolling_out()
    assert condition_of(trustee.get(TRUSTEE), "Edited").status == "False"
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


@pytest.mark.parametrize("refused", ["deployments.apps", "services"])
def test_a_first_child_that_is_refused_is_reported_and_made_once_it_is_allowed(
    trustee: TrusteeNamespace, refused: str
) -> None:
    hard = {f"count/{refused}": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": hard}}
    trustee.apply(quota)
    # The controller of quotas does not run here: admission goes by the status.
    trustee.patch_status("resourcequota/none", hard=hard, used=hard)

    trustee.apply(trustee_config())
    found = trustee.until(KBS, lambda found: "exceeded quota" in condition_of(found, "Ready").message)
    assert (found["status"]["isReady"], condition_of(found, "Ready").status) == (False, "False")
    assert trustee.until_event(KBS, f"{'Service' if refused == 'services' else 'Deployment'}CreateFailed")

    trustee.kubectl("delete", "resourcequota/none")
    trustee.until_rolling_out()


def test_a_name_that_is_too_long_for_a_label_is_refused_before_anything_is_made(trustee: TrusteeNamespace) -> None:
    name = "a" * 70
    manifest = json.dumps(trustee_config(name))

    done = trustee.kubectl.run("apply", "-f", "-", stdin=manifest)

    assert done.returncode != 0
    assert "metadata.name: write 63 characters at most" in done.stderr
    assert trustee.get(f"trusteeconfig/{name}") is None


def test_edits_of_a_paused_trustee_are_kept_until_it_is_resumed(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    trustee.kubectl("annotate", TRUSTEE, "setpoint.dev/management=paused")
    trustee.until_condition(TRUSTEE, "Ready", "Paused")

    trustee.patch(KBS, spec={"kbsAuthSecretName": "attestation-status"})
    trustee.until(DEPLOYMENT, lambda _: "attestation-status" in str(trustee.config_versions()).split(":")[5])
    assert trustee.get(KBS)["spec"]["kbsAuthSecretName"] == "attestation-status"

    trustee.kubectl("annotate", TRUSTEE, "setpoint.dev/management-")
    trustee.until(KBS, lambda found: found["spec"]["kbsAuthSecretName"] == "tc-auth-secret")
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)
