"""Ownership of children: an existing object without an owner is adopted, one of another owner is left alone."""

from typing import Any

from tests.cluster.trustee.manifests import encoded, kbs_config, secret, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, told

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def _owner_uids(trustee: TrusteeNamespace, target: str) -> list[str]:
    return [one["uid"] for one in trustee.see(target)["metadata"].get("ownerReferences", ())]


def _uid(trustee: TrusteeNamespace, target: str) -> str:
    return str(trustee.see(target)["metadata"]["uid"])


def test_a_kbs_config_that_was_there_is_adopted_with_its_list(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(secret("mine", key=encoded("a key")), kbs_config("tc-kbs-config", kbsSecretResources=["mine"]))
    trustee.until(KBS, lambda found: told(found, "Ready").status == "False")
    uid = _uid(trustee, KBS)

    trustee.settle(trustee_config())

    kbs = trustee.see(KBS)
    assert (kbs["metadata"]["uid"], _owner_uids(trustee, KBS)) == (uid, [_uid(trustee, TRUSTEE)])
    assert kbs["spec"]["kbsSecretResources"] == ["mine"]
    assert kbs["spec"]["kbsConfigMapName"] == "tc-kbs-config"
    assert kbs["spec"]["KbsEnvVars"] == {"RUST_LOG": "debug"}
    assert told(trustee.see(TRUSTEE), "Edited").reason == "EditsKept"
    trustee_cluster.hold(trustee, *ALL)


def test_a_kbs_config_of_another_owner_is_left_alone_with_an_event(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "someone"}})
    theirs = kbs_config("tc-kbs-config", kbsSecretResources=["theirs"])
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "someone", "uid": _uid(trustee, "configmap/someone")}
    theirs["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    trustee.apply(theirs)

    trustee.apply(trustee_config())
    said = trustee.until_told(TRUSTEE, "Ready", "DependencyInvalid")

    assert said.message.replace(trustee.namespace, "here") == (
        "KbsConfig here/tc-kbs-config belongs to ConfigMap here/someone: delete it there, or give this one another name"
    )
    assert trustee.see(KBS)["spec"] == {"kbsSecretResources": ["theirs"]}
    assert _owner_uids(trustee, KBS) == [owner["uid"]]
    assert trustee.until_noted(TRUSTEE, "DependencyInvalid")["type"] == "Warning"
    trustee_cluster.hold(trustee, TRUSTEE, KBS)


def test_a_foreign_secret_with_our_name_is_not_changed(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(secret("attestation-status", status=encoded("mine")))
    before = trustee.version("secret/attestation-status")

    trustee.settle(trustee_config())

    assert trustee.version("secret/attestation-status") == before
    trustee_cluster.hold(trustee, *ALL, "secret/attestation-status")


def test_two_namespaces_have_nothing_to_do_with_each_other(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    other = trustee_cluster.new_namespace()
    trustee.settle(trustee_config())
    other.settle(trustee_config())

    trustee.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 2}})
    trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 2)
    other.bring_up()
    other.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)

    assert other.see(DEPLOYMENT)["spec"]["replicas"] == 1
    assert "isReady" not in trustee.see(TRUSTEE)["status"]
    trustee_cluster.hold(trustee, *ALL)
    trustee_cluster.hold(other, *ALL)


def test_a_second_one_in_a_namespace_is_told_whose_the_pods_are(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = _specs(trustee)

    trustee.apply(trustee_config("second"))
    second = "kbsconfig/second-kbs-config"
    said = trustee.until_told(second, "Ready", "DependencyInvalid")

    assert said.message.replace(trustee.namespace, "here") == (
        "Deployment here/trustee-deployment belongs to KbsConfig here/tc-kbs-config: "
        "delete it there, or give this one another name"
    )
    trustee.until("trusteeconfig/second", lambda found: said.message in told(found, "Ready").message)
    assert trustee.see(second)["status"]["isReady"] is False
    assert _specs(trustee) == before
    trustee.until_rolling_out()
    trustee_cluster.hold(trustee, *ALL, second, "trusteeconfig/second", "secret/attestation-status")


def _specs(trustee: TrusteeNamespace) -> Any:
    children = {target: trustee.see(target) for target in (KBS, DEPLOYMENT, SERVICE, "secret/attestation-status")}
    return {target: (found["metadata"]["uid"], found.get("spec")) for target, found in children.items()}
