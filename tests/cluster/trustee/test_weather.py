"""Writes whose answers do not arrive: people's edits are still people's, and ours are ours."""

from tests.cluster.running.proxy import blue_sky, lost_answers
from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import restricted, tls_secrets, trustee_config
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot, told
from tests.cluster.trustee.test_story import PERMISSIVE_SPEC

ALL = (TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_nothing_of_ours_is_taken_for_an_edit(estate: Estate, plot: Plot) -> None:
    other = estate.new_plot()
    with estate.weather(blue_sky, lost_answers(0.3)):
        plot.settle(trustee_config())
        other.settle(*tls_secrets(), restricted())
        other.apply(trustee_config())
        other.until(KBS, lambda found: found["spec"] == PERMISSIVE_SPEC)

    for one in (plot, other):
        one.until_rolling_out()
        assert one.see(KBS)["spec"] == PERMISSIVE_SPEC
        assert told(one.see(TRUSTEE), "Edited").status == "False"
        assert "conflicts" not in one.see(TRUSTEE)["status"]
        reasons = {note["reason"] for note in one.events("trusteeconfig", "tc")}
        assert not reasons & {"Reverted", "MadeAnew", "EditsKept", "Conflicting"}
        estate.hold(one, *ALL)


def test_every_edit_of_many_is_kept(estate: Estate, plot: Plot) -> None:
    plot.settle(*tls_secrets(), trustee_config())

    with estate.weather(blue_sky, lost_answers(0.3)):
        for number in range(10):
            plot.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": number + 2}, "KbsEnvVars": {f"MINE_{number}": "1"}})
            plot.patch(TRUSTEE, spec={"kbsServiceType": "NodePort" if number % 2 else "ClusterIP"})
        plot.until(SERVICE, lambda found: found["spec"]["type"] == "NodePort")
        plot.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 11)
    plot.until_rolling_out()

    mine = {f"MINE_{number}": "1" for number in range(10)}
    spec = plot.see(KBS)["spec"]
    assert spec["KbsDeploymentSpec"] == {"replicas": 11}
    assert spec["KbsEnvVars"] == {"RUST_LOG": "debug", **mine}
    assert told(plot.see(TRUSTEE), "Edited").message.startswith("11 preserved: ")
    estate.hold(plot, *ALL)
