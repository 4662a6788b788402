"""A process is killed in the middle of the first creation: the next one finishes, and takes nothing for an edit."""

import asyncio
import random
from typing import Final

from aiohttp import web

from tests.cluster.patience import until
from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot, told
from tests.cluster.trustee.test_story import CONFIG_MAPS, PERMISSIVE_SPEC

# Without events, both owners take so many writes until there is nothing to do but wait for pods.
WRITES: Final = 14
MOMENTS: Final = 8


class Stalling:
    """After so many writes to a namespace, nobody who asks for anything there gets an answer: that write had none."""

    def __init__(self, allowed: dict[str, int]) -> None:
        self._left = dict(allowed)
        self.stalled: set[str] = set()

    def loses_answer(self, incoming: web.BaseRequest) -> bool:
        """Whether this is the last write: it is carried out."""
        namespace = self._namespace(incoming)
        if incoming.method == "GET" or "/events" in incoming.path or namespace not in self._left:
            return False
        self._left[namespace] -= 1
        if self._left[namespace] > 0:
            return False
        self.stalled.add(namespace)
        return True

    async def weather(self, incoming: web.BaseRequest) -> web.StreamResponse | None:
        """Hangs for whoever comes after it."""
        if self._namespace(incoming) in self.stalled:
            await asyncio.sleep(3600)
        return None

    def _namespace(self, incoming: web.BaseRequest) -> str:
        parts = incoming.path.split("/")
        return parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""


def test_whenever_a_process_is_killed_the_next_one_finishes_and_nothing_is_taken_for_an_edit(estate: Estate) -> None:
    plots = [estate.new_plot() for _ in range(MOMENTS)]
    moments = random.Random().sample(range(1, WRITES + 1), MOMENTS)
    stalling = Stalling({plot.namespace: context for plot, context in zip(plots, moments, strict=True)})
    with estate.weather(stalling.weather, stalling.loses_answer):
        for plot in plots:
            plot.apply(trustee_config())
        until(lambda: len(stalling.stalled) == MOMENTS)
        estate.keeper.kill()
    estate.keeper.start()

    for plot, context in zip(plots, moments, strict=True):
        plot.until_rolling_out()
        _is_whole(plot, f"killed after write {context}")
        estate.hold(plot, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def _is_whole(plot: Plot, when: str) -> None:
    names = plot.kubectl("get", "configmaps,secrets,kbsconfigs,deployments,services", "-o", "name").split()
    made = {name.replace(".confidentialcontainers.org", "").replace(".apps", "") for name in names}
    expected = {KBS, DEPLOYMENT, SERVICE, "secret/tc-auth-secret", "secret/attestation-status"}
    assert made - {"configmap/kube-root-ca.crt"} == {*expected, *(f"configmap/{name}" for name in CONFIG_MAPS)}, when
    assert plot.see(KBS)["spec"] == PERMISSIVE_SPEC, when
    edited = told(plot.see(TRUSTEE), "Edited")
    assert (edited.status, edited.reason) == ("False", "AsGenerated"), (when, edited)
    assert "conflicts" not in plot.see(TRUSTEE)["status"], when
    assert [one["reason"] for one in plot.events("trusteeconfig", "tc") if one["type"] == "Warning"] == [], when
