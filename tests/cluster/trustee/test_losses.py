"""What is generated and deleted by somebody comes back."""

from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot, told

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_a_config_map_comes_back(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    before = plot.see("configmap/tc-resource-policy")["data"]
    version = plot.version("configmap/tc-resource-policy")

    plot.delete("configmap/tc-resource-policy")

    assert plot.until_made_anew(version)["data"] == before
    plot.until_rolling_out()
    assert told(plot.see(TRUSTEE), "Edited").status == "False"
    estate.hold(plot, *ALL, "configmap/tc-resource-policy")


def test_a_lost_key_pair_is_replaced_by_another_and_people_are_warned(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    version, before = plot.version("secret/tc-auth-secret"), plot.trace()
    old = plot.see("secret/tc-auth-secret")["data"]

    plot.delete("secret/tc-auth-secret")
    new = plot.until_made_anew(version)
    note = plot.until_noted(TRUSTEE, "MadeAnew")

    assert new["data"].keys() == old.keys()
    assert new["data"]["privateKey"] != old["privateKey"]
    assert note["type"] == "Warning"
    assert note["message"].startswith("Secret/tc-auth-secret was gone and is made anew, with a fresh Ed25519 key pair")
    plot.until(DEPLOYMENT, lambda _: plot.trace() != before)
    plot.until_rolling_out()
    estate.hold(plot, *ALL, "secret/tc-auth-secret")


def test_a_kbs_config_comes_back_with_pods(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    kbs, deployment = plot.version(KBS), plot.version(DEPLOYMENT)
    before = plot.see(KBS)["spec"]

    plot.delete(KBS)

    assert plot.until_made_anew(kbs)["spec"] == before
    plot.until_made_anew(deployment)
    plot.until_rolling_out()
    owner = plot.see(DEPLOYMENT)["metadata"]["ownerReferences"][0]
    assert owner["uid"] == plot.see(KBS)["metadata"]["uid"]
    service = plot.until(SERVICE, lambda found: found["metadata"]["ownerReferences"][0]["uid"] == owner["uid"])
    assert service["spec"]["selector"] == {"app": "kbs"}
    estate.hold(plot, *ALL)


def test_what_is_left_of_an_earlier_kbs_config_is_waited_for(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    version = plot.version(SERVICE)
    plot.patch(SERVICE, metadata={"finalizers": ["example.com/slow"]})

    plot.delete(KBS)
    said = plot.until_told(KBS, "Ready", "DependencyNotReady")
    assert said.message.replace(plot.namespace, "here").startswith(
        "Service here/kbs-service is left of an earlier KbsConfig here/tc-kbs-config: it is made anew once it is gone"
    )
    assert plot.see(SERVICE)["metadata"]["uid"] == version.uid

    plot.delete(SERVICE)
    plot.patch(SERVICE, metadata={"finalizers": None})
    plot.until_made_anew(version)
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_a_deployment_comes_back(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    plot.bring_up()
    plot.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)
    version = plot.version(DEPLOYMENT)

    plot.delete(DEPLOYMENT)
    plot.until_made_anew(version)

    plot.until(TRUSTEE, lambda found: "isReady" not in found["status"])
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_a_service_comes_back(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    version = plot.version(SERVICE)

    plot.delete(SERVICE)

    assert plot.until_made_anew(version)["spec"]["selector"] == {"app": "kbs"}
    plot.until_rolling_out()
    estate.hold(plot, *ALL)


def test_what_is_done_to_the_pods_is_put_back(estate: Estate, plot: Plot) -> None:
    """The Deployment has no fields that are people's: they say it in the KbsConfig."""
    plot.settle(trustee_config())

    plot.kubectl("scale", DEPLOYMENT, "--replicas=5")
    plot.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 1 and found["metadata"]["generation"] == 3)

    plot.until_rolling_out()
    estate.hold(plot, *ALL)
