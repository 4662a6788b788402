"""A process is killed in the middle of the first creation: the next one finishes, and takes nothing for an edit."""

import asyncio
import random
from typing import Final

from aiohttp import web

from tests.cluster.polling import until
from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.test_lifecycle import CONFIG_MAPS, PERMISSIVE_SPEC
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, told

# Without events, both owners take so many writes until there is nothing to do but wait for pods.
WRITES: Final = 14
MOMENTS: Final = 8


class Stalling:
    """After so many writes to a namespace, no request there gets a response: that write had none."""

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

    async def fault(self, incoming: web.BaseRequest) -> web.StreamResponse | None:
        """Hangs for every later request."""
        if self._namespace(incoming) in self.stalled:
            await asyncio.sleep(3600)
        return None

    def _namespace(self, incoming: web.BaseRequest) -> str:
        parts = incoming.path.split("/")
        return parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""


def test_whenever_a_process_is_killed_the_next_one_finishes_and_nothing_is_taken_for_an_edit(
    trustee_cluster: TrusteeCluster,
) -> None:
    namespaces = [trustee_cluster.new_namespace() for _ in range(MOMENTS)]
    moments = random.Random().sample(range(1, WRITES + 1), MOMENTS)
    stalling = Stalling({trustee.namespace: context for trustee, context in zip(namespaces, moments, strict=True)})
    with trustee_cluster.fault(stalling.fault, stalling.loses_answer):
        for trustee in namespaces:
            trustee.apply(trustee_config())
        until(lambda: len(stalling.stalled) == MOMENTS)
        trustee_cluster.keeper.kill()
    trustee_cluster.keeper.start()

    for trustee, context in zip(namespaces, moments, strict=True):
        trustee.until_rolling_out()
        _is_whole(trustee, f"killed after write {context}")
        trustee_cluster.hold(trustee, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def _is_whole(trustee: TrusteeNamespace, when: str) -> None:
    names = trustee.kubectl("get", "configmaps,secrets,kbsconfigs,deployments,services", "-o", "name").split()
    made = {name.replace(".confidentialcontainers.org", "").replace(".apps", "") for name in names}
    expected = {KBS, DEPLOYMENT, SERVICE, "secret/tc-auth-secret", "secret/attestation-status"}
    assert made - {"configmap/kube-root-ca.crt"} == {*expected, *(f"configmap/{name}" for name in CONFIG_MAPS)}, when
    assert trustee.see(KBS)["spec"] == PERMISSIVE_SPEC, when
    edited = told(trustee.see(TRUSTEE), "Edited")
    assert (edited.status, edited.reason) == ("False", "AsGenerated"), (when, edited)
    assert "conflicts" not in trustee.see(TRUSTEE)["status"], when
    assert [one["reason"] for one in trustee.events("trusteeconfig", "tc") if one["type"] == "Warning"] == [], when
