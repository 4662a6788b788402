"""Deleted children are created again."""

from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, condition_of

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_a_deleted_config_map_is_created_again(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    before = trustee.get("configmap/tc-resource-policy")["data"]
    version = trustee.version("configmap/tc-resource-policy")

    trustee.delete("configmap/tc-resource-policy")

    assert trustee.until_recreated(version)["data"] == before
    trustee.until_rolling_out()
    assert condition_of(trustee.get(TRUSTEE), "Edited").status == "False"
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "configmap/tc-resource-policy")


def test_a_deleted_key_pair_is_generated_anew_with_a_warning_event(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    version, before = trustee.version("secret/tc-auth-secret"), trustee.config_versions()
    old = trustee.get("secret/tc-auth-secret")["data"]

    trustee.delete("secret/tc-auth-secret")
    new = trustee.until_recreated(version)
    event = trustee.until_event(TRUSTEE, "MadeAnew")

    assert new["data"].keys() == old.keys()
    assert new["data"]["privateKey"] != old["privateKey"]
    assert event["type"] == "Warning"
    assert event["message"].startswith("Secret/tc-auth-secret was gone and is made anew, with a fresh Ed25519 key pair")
    trustee.until(DEPLOYMENT, lambda _: trustee.config_versions() != before)
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "secret/tc-auth-secret")


def test_a_deleted_kbs_config_is_created_again_with_its_deployment(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    kbs, deployment = trustee.version(KBS), trustee.version(DEPLOYMENT)
    before = trustee.get(KBS)["spec"]

    trustee.delete(KBS)

    assert trustee.until_recreated(kbs)["spec"] == before
    trustee.until_recreated(deployment)
    trustee.until_rolling_out()
    owner = trustee.get(DEPLOYMENT)["metadata"]["ownerReferences"][0]
    assert owner["uid"] == trustee.get(KBS)["metadata"]["uid"]
    service = trustee.until(SERVICE, lambda found: found["metadata"]["ownerReferences"][0]["uid"] == owner["uid"])
    assert service["spec"]["selector"] == {"app": "kbs"}
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_child_of_a_deleted_kbs_config_is_waited_for(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    version = trustee.version(SERVICE)
    trustee.patch(SERVICE, metadata={"finalizers": ["example.com/slow"]})

    trustee.delete(KBS)
    condition = trustee.until_condition(KBS, "Ready", "DependencyNotReady")
    assert condition.message.replace(trustee.namespace, "here").startswith(
        "Service here/kbs-service is left of an earlier KbsConfig here/tc-kbs-config: it is made anew once it is gone"
    )
    assert trustee.get(SERVICE)["metadata"]["uid"] == version.uid

    trustee.delete(SERVICE)
    trustee.patch(SERVICE, metadata={"finalizers": None})
    trustee.until_recreated(version)
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_deleted_deployment_is_created_again(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    trustee.report_replicas()
    trustee.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)
    version = trustee.version(DEPLOYMENT)

    trustee.delete(DEPLOYMENT)
    trustee.until_recreated(version)

    trustee.until(TRUSTEE, lambda found: "isReady" not in found["status"])
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_deleted_service_is_created_again(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    version = trustee.version(SERVICE)

    trustee.delete(SERVICE)

    assert trustee.until_recreated(version)["spec"]["selector"] == {"app": "kbs"}
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_an_edit_of_the_deployment_is_reverted(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    """Every field of the Deployment is managed: edits belong into the KbsConfig."""
    trustee.settle(trustee_config())

    trustee.kubectl("scale", DEPLOYMENT, "--replicas=5")
    trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 1 and found["metadata"]["generation"] == 3)

    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL)
