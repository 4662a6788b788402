"""Generated objects that are deleted come back."""

from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, told

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_a_config_map_comes_back(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    before = trustee.see("configmap/tc-resource-policy")["data"]
    version = trustee.version("configmap/tc-resource-policy")

    trustee.delete("configmap/tc-resource-policy")

    assert trustee.until_made_anew(version)["data"] == before
    trustee.until_rolling_out()
    assert told(trustee.see(TRUSTEE), "Edited").status == "False"
    trustee_cluster.hold(trustee, *ALL, "configmap/tc-resource-policy")


def test_a_lost_key_pair_is_replaced_by_another_and_people_are_warned(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    version, before = trustee.version("secret/tc-auth-secret"), trustee.trace()
    old = trustee.see("secret/tc-auth-secret")["data"]

    trustee.delete("secret/tc-auth-secret")
    new = trustee.until_made_anew(version)
    note = trustee.until_noted(TRUSTEE, "MadeAnew")

    assert new["data"].keys() == old.keys()
    assert new["data"]["privateKey"] != old["privateKey"]
    assert note["type"] == "Warning"
    assert note["message"].startswith("Secret/tc-auth-secret was gone and is made anew, with a fresh Ed25519 key pair")
    trustee.until(DEPLOYMENT, lambda _: trustee.trace() != before)
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL, "secret/tc-auth-secret")


def test_a_kbs_config_comes_back_with_pods(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    kbs, deployment = trustee.version(KBS), trustee.version(DEPLOYMENT)
    before = trustee.see(KBS)["spec"]

    trustee.delete(KBS)

    assert trustee.until_made_anew(kbs)["spec"] == before
    trustee.until_made_anew(deployment)
    trustee.until_rolling_out()
    owner = trustee.see(DEPLOYMENT)["metadata"]["ownerReferences"][0]
    assert owner["uid"] == trustee.see(KBS)["metadata"]["uid"]
    service = trustee.until(SERVICE, lambda found: found["metadata"]["ownerReferences"][0]["uid"] == owner["uid"])
    assert service["spec"]["selector"] == {"app": "kbs"}
    trustee_cluster.hold(trustee, *ALL)


def test_what_is_left_of_an_earlier_kbs_config_is_waited_for(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    version = trustee.version(SERVICE)
    trustee.patch(SERVICE, metadata={"finalizers": ["example.com/slow"]})

    trustee.delete(KBS)
    said = trustee.until_told(KBS, "Ready", "DependencyNotReady")
    assert said.message.replace(trustee.namespace, "here").startswith(
        "Service here/kbs-service is left of an earlier KbsConfig here/tc-kbs-config: it is made anew once it is gone"
    )
    assert trustee.see(SERVICE)["metadata"]["uid"] == version.uid

    trustee.delete(SERVICE)
    trustee.patch(SERVICE, metadata={"finalizers": None})
    trustee.until_made_anew(version)
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_a_deployment_comes_back(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    trustee.bring_up()
    trustee.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)
    version = trustee.version(DEPLOYMENT)

    trustee.delete(DEPLOYMENT)
    trustee.until_made_anew(version)

    trustee.until(TRUSTEE, lambda found: "isReady" not in found["status"])
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_a_service_comes_back(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    version = trustee.version(SERVICE)

    trustee.delete(SERVICE)

    assert trustee.until_made_anew(version)["spec"]["selector"] == {"app": "kbs"}
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)


def test_what_is_done_to_the_pods_is_put_back(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    """The Deployment has no fields that are people's: they say it in the KbsConfig."""
    trustee.settle(trustee_config())

    trustee.kubectl("scale", DEPLOYMENT, "--replicas=5")
    trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 1 and found["metadata"]["generation"] == 3)

    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL)
