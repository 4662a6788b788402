"""Ownership of children: an existing object without an owner is adopted, one of another owner is left alone."""

from typing import Any

from tests.cluster.trustee.manifests import encoded, kbs_config, secret, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, condition_of

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def _owner_uids(trustee: TrusteeNamespace, target: str) -> list[str]:
    return [one["uid"] for one in trustee.get(target)["metadata"].get("ownerReferences", ())]


def _uid(trustee: TrusteeNamespace, target: str) -> str:
    return str(trustee.get(target)["metadata"]["uid"])


def test_an_existing_kbs_config_is_adopted_with_its_secret_resources(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(secret("mine", key=encoded("a key")), kbs_config("tc-kbs-config", kbsSecretResources=["mine"]))
    trustee.until(KBS, lambda found: condition_of(found, "Ready").status == "False")
    uid = _uid(trustee, KBS)

    trustee.settle(trustee_config())

    kbs = trustee.get(KBS)
    assert (kbs["metadata"]["uid"], _owner_uids(trustee, KBS)) == (uid, [_uid(trustee, TRUSTEE)])
    assert kbs["spec"]["kbsSecretResources"] == ["mine"]
    assert kbs["spec"]["kbsConfigMapName"] == "tc-kbs-config"
    assert kbs["spec"]["KbsEnvVars"] == {"RUST_LOG": "debug"}
    assert condition_of(trustee.get(TRUSTEE), "Edited").reason == "EditsKept"
    trustee_cluster.expect_no_more_writes(trustee, *ALL)


def test_a_kbs_config_of_another_owner_is_left_alone_with_an_event(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "someone"}})
    theirs = kbs_config("tc-kbs-config", kbsSecretResources=["theirs"])
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "someone", "uid": _uid(trustee, "configmap/someone")}
    theirs["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    trustee.apply(theirs)

    trustee.apply(trustee_config())
    condition = trustee.until_condition(TRUSTEE, "Ready", "DependencyInvalid")

    assert condition.message.replace(trustee.namespace, "here") == (
        "KbsConfig here/tc-kbs-config belongs to ConfigMap here/someone: delete it there, or give this one another name"
    )
    assert trustee.get(KBS)["spec"] == {"kbsSecretResources": ["theirs"]}
    assert _owner_uids(trustee, KBS) == [owner["uid"]]
    assert trustee.until_event(TRUSTEE, "DependencyInvalid")["type"] == "Warning"
    trustee_cluster.expect_no_more_writes(trustee, TRUSTEE, KBS)


def test_an_existing_secret_of_the_same_name_is_not_changed(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.apply(secret("attestation-status", status=encoded("mine")))
    before = trustee.version("secret/attestation-status")

    trustee.settle(trustee_config())

    assert trustee.version("secret/attestation-status") == before
    trustee_cluster.expect_no_more_writes(trustee, *ALL, "secret/attestation-status")


def test_namespaces_are_independent(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    other = trustee_cluster.new_namespace()
    trustee.settle(trustee_config())
    other.settle(trustee_config())

    trustee.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 2}})
    trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 2)
    other.report_replicas()
    other.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)

    assert other.get(DEPLOYMENT)["spec"]["replicas"] == 1
    assert "isReady" not in trustee.get(TRUSTEE)["status"]
    trustee_cluster.expect_no_more_writes(trustee, *ALL)
    trustee_cluster.expect_no_more_writes(other, *ALL)


def test_a_second_trustee_in_a_namespace_reports_the_owner_of_the_deployment(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    before = _specs(trustee)

    trustee.apply(trustee_config("second"))
    second = "kbsconfig/second-kbs-config"
    condition = trustee.until_condition(second, "Ready", "DependencyInvalid")

    assert condition.message.replace(trustee.namespace, "here") == (
        "Deployment here/trustee-deployment belongs to KbsConfig here/tc-kbs-config: "
        "delete it there, or give this one another name"
    )
    trustee.until("trusteeconfig/second", lambda found: condition.message in condition_of(found, "Ready").message)
    assert trustee.get(second)["status"]["isReady"] is False
    assert _specs(trustee) == before
    trustee.until_rolling_out()
    trustee_cluster.expect_no_more_writes(trustee, *ALL, second, "trusteeconfig/second", "secret/attestation-status")


def _specs(trustee: TrusteeNamespace) -> Any:
    children = {target: trustee.get(target) for target in (KBS, DEPLOYMENT, SERVICE, "secret/attestation-status")}
    return {target: (found["metadata"]["uid"], found.get("spec")) for target, found in children.items()}
