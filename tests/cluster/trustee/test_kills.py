"""A controller is killed during the first creation: the next one finishes it, and takes no write for an edit."""

import asyncio
import random
from typing import Final

from aiohttp import web

from tests.cluster.polling import until
from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.test_lifecycle import CONFIG_MAPS, PERMISSIVE_SPEC
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, condition_of

# The writes of both owners, without events, until they wait for pods.
WRITES: Final = 14
KILLS: Final = 8


class StalledNamespaces:
    """Loses the response of the last allowed write to each namespace, and stalls every later request there."""

    def __init__(self, allowed: dict[str, int]) -> None:
        self._left = dict(allowed)
        self.stalled: set[str] = set()

    def loses_response(self, incoming: web.BaseRequest) -> bool:
        """Whether this is the last allowed write."""
        namespace = self._namespace(incoming)
        if incoming.method == "GET" or "/events" in incoming.path or namespace not in self._left:
            return False
        self._left[namespace] -= 1
        if self._left[namespace] > 0:
            return False
        self.stalled.add(namespace)
        return True

    async def fault(self, incoming: web.BaseRequest) -> web.StreamResponse | None:
        """Stalls later requests."""
        if self._namespace(incoming) in self.stalled:
            await asyncio.sleep(3600)
        return None

    def _namespace(self, incoming: web.BaseRequest) -> str:
        parts = incoming.path.split("/")
        return parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""


def test_a_creation_that_was_killed_at_any_write_is_finished_and_nothing_is_taken_for_an_edit(
    trustee_cluster: TrusteeCluster,
) -> None:
    namespaces = [trustee_cluster.new_namespace() for _ in range(KILLS)]
    last_writes = random.Random().sample(range(1, WRITES + 1), KILLS)
    stalled_namespaces = StalledNamespaces(
        {trustee.namespace: last_write for trustee, last_write in zip(namespaces, last_writes, strict=True)}
    )
    with trustee_cluster.fault(stalled_namespaces.fault, stalled_namespaces.loses_response):
        for trustee in namespaces:
            trustee.apply(trustee_config())
        until(lambda: len(stalled_namespaces.stalled) == KILLS)
        trustee_cluster.kill_controller()
    trustee_cluster.controller.start()

    for trustee, last_write in zip(namespaces, last_writes, strict=True):
        trustee.until_rolling_out()
        _assert_complete(trustee, f"killed after write {last_write}")
        trustee_cluster.expect_no_more_writes(trustee, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def _assert_complete(trustee: TrusteeNamespace, when: str) -> None:
    names = trustee.kubectl("get", "configmaps,secrets,kbsconfigs,deployments,services", "-o", "name").split()
    made = {name.replace(".confidentialcontainers.org", "").replace(".apps", "") for name in names}
    expected = {KBS, DEPLOYMENT, SERVICE, "secret/tc-auth-secret", "secret/attestation-status"}
    assert made - {"configmap/kube-root-ca.crt"} == {*expected, *(f"configmap/{name}" for name in CONFIG_MAPS)}, when
    assert trustee.get(KBS)["spec"] == PERMISSIVE_SPEC, when
    edited = condition_of(trustee.get(TRUSTEE), "Edited")
    assert (edited.status, edited.reason) == ("False", "AsGenerated"), (when, edited)
    assert "conflicts" not in trustee.get(TRUSTEE)["status"], when
    assert [one["reason"] for one in trustee.events("trusteeconfig", "tc") if one["type"] == "Warning"] == [], when
