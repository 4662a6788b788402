"""Whose a child is: what was there before is adopted when it is nobody's, and left alone when it is another's."""

from typing import Any

from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import encoded, kbs_config, secret, trustee_config
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot, told

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def _owner_uids(plot: Plot, target: str) -> list[str]:
    return [one["uid"] for one in plot.see(target)["metadata"].get("ownerReferences", ())]


def _uid(plot: Plot, target: str) -> str:
    return str(plot.see(target)["metadata"]["uid"])


def test_a_kbs_config_that_was_there_is_adopted_with_its_list(estate: Estate, plot: Plot) -> None:
    plot.apply(secret("mine", key=encoded("a key")), kbs_config("tc-kbs-config", kbsSecretResources=["mine"]))
    plot.until(KBS, lambda found: told(found, "Ready").status == "False")
    uid = _uid(plot, KBS)

    plot.settle(trustee_config())

    kbs = plot.see(KBS)
    assert (kbs["metadata"]["uid"], _owner_uids(plot, KBS)) == (uid, [_uid(plot, TRUSTEE)])
    assert kbs["spec"]["kbsSecretResources"] == ["mine"]
    assert kbs["spec"]["kbsConfigMapName"] == "tc-kbs-config"
    assert kbs["spec"]["KbsEnvVars"] == {"RUST_LOG": "debug"}
    assert told(plot.see(TRUSTEE), "Edited").reason == "EditsKept"
    estate.hold(plot, *ALL)


def test_a_kbs_config_of_somebody_else_is_left_alone_and_it_is_said(estate: Estate, plot: Plot) -> None:
    plot.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "someone"}})
    theirs = kbs_config("tc-kbs-config", kbsSecretResources=["theirs"])
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "someone", "uid": _uid(plot, "configmap/someone")}
    theirs["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    plot.apply(theirs)

    plot.apply(trustee_config())
    said = plot.until_told(TRUSTEE, "Ready", "DependencyInvalid")

    assert said.message.replace(plot.namespace, "here") == (
        "KbsConfig here/tc-kbs-config belongs to ConfigMap here/someone: delete it there, or give this one another name"
    )
    assert plot.see(KBS)["spec"] == {"kbsSecretResources": ["theirs"]}
    assert _owner_uids(plot, KBS) == [owner["uid"]]
    assert plot.until_noted(TRUSTEE, "DependencyInvalid")["type"] == "Warning"
    estate.hold(plot, TRUSTEE, KBS)


def test_a_secret_of_somebody_that_has_our_name_stays_theirs(estate: Estate, plot: Plot) -> None:
    plot.apply(secret("attestation-status", status=encoded("mine")))
    before = plot.version("secret/attestation-status")

    plot.settle(trustee_config())

    assert plot.version("secret/attestation-status") == before
    estate.hold(plot, *ALL, "secret/attestation-status")


def test_two_namespaces_have_nothing_to_do_with_each_other(estate: Estate, plot: Plot) -> None:
    other = estate.new_plot()
    plot.settle(trustee_config())
    other.settle(trustee_config())

    plot.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 2}})
    plot.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 2)
    other.bring_up()
    other.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)

    assert other.see(DEPLOYMENT)["spec"]["replicas"] == 1
    assert "isReady" not in plot.see(TRUSTEE)["status"]
    estate.hold(plot, *ALL)
    estate.hold(other, *ALL)


def test_a_second_one_in_a_namespace_is_told_whose_the_pods_are(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    before = _specs(plot)

    plot.apply(trustee_config("second"))
    second = "kbsconfig/second-kbs-config"
    said = plot.until_told(second, "Ready", "DependencyInvalid")

    assert said.message.replace(plot.namespace, "here") == (
        "Deployment here/trustee-deployment belongs to KbsConfig here/tc-kbs-config: "
        "delete it there, or give this one another name"
    )
    plot.until("trusteeconfig/second", lambda found: said.message in told(found, "Ready").message)
    assert plot.see(second)["status"]["isReady"] is False
    assert _specs(plot) == before
    plot.until_rolling_out()
    estate.hold(plot, *ALL, second, "trusteeconfig/second", "secret/attestation-status")


def _specs(plot: Plot) -> Any:
    children = {target: plot.see(target) for target in (KBS, DEPLOYMENT, SERVICE, "secret/attestation-status")}
    return {target: (found["metadata"]["uid"], found.get("spec")) for target, found in children.items()}
