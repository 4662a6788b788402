"""Waits of Terraform, and of KubernetesObjects in a store of one person, for objects with secret values."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import pytest

from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.core.wait.wait_for import parse_wait
from setpoint.engine.step.outcomes import Stopped
from setpoint.errors import WaitFailed
from setpoint.objects.session import ClusterSession
from setpoint.objects.wait import ObjectWait
from setpoint.terraform.connections.clusters import ClusterConnections
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.sources.single_object import ObjectDataSource
from setpoint.terraform.sources.wait_resource import WaitResource
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import ObjectHarness, config_map, environment

T = TypeVar("T")
PLANTED = "Sesame-4711"
ENCODED = "U2VzYW1lLTQ3MTE="
KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"
# Every spelling of a path to a value of a Secret, and to what contains one.
SPELLINGS = [
    "data",
    "data.key",
    'data["key"]',
    '["data"]["key"]',
    "metadata",
    "metadata.annotations",
    f'metadata.annotations["{KUBECTL}"]',
]


@dataclass(frozen=True, slots=True)
class _Connections:
    """The connection of a provider to one cluster."""

    one: ClusterSession

    def session(self, _cluster: object) -> ClusterSession:
        return self.one

    def require_known(self, _cluster: object) -> None:
        """It is known."""


def in_cluster(access: Access, work: Callable[[ClusterSession], Awaitable[T]]) -> T:
    """The result of `work` with a session of that cluster."""

    async def main() -> T:
        session = ClusterSession.at(connection_from_files([access.kubeconfig]))
        try:
            return await work(session)
        finally:
            await session.client.close()

    return asyncio.run(main())


@pytest.fixture
def secret(api_server: Access, namespace: str) -> str:
    """The namespace with a Secret, as `kubectl apply` leaves it."""
    metadata = {"name": "keys", "annotations": {KUBECTL: json.dumps({"stringData": {"key": PLANTED}})}}
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": PLANTED}}
    made = api_server.call("POST", f"/api/v1/namespaces/{namespace}/secrets", document)
    assert made.body["data"] == {"key": ENCODED}
    return namespace


@pytest.mark.parametrize("path", SPELLINGS)
def test_a_wait_of_terraform_fails_and_tells_no_value(api_server: Access, secret: str, path: str) -> None:
    async def messages(session: ClusterSession) -> list[str]:
        wait = ObjectWait(session, "v1", "Secret", (secret, "keys"))
        found = []
        for criterion in ({"field": path}, {"fieldValue": {path: ENCODED}}, {"fieldValue": {path: "wrong"}}):
            with pytest.raises(WaitFailed) as failed:
                await wait.until(parse_wait({**criterion, "timeout": "60s"}))
            found.append(str(failed.value))
        return found

    found = in_cluster(api_server, messages)

    assert len(set(found)) == 1
    assert "secret values do not become outputs" in found[0]
    assert PLANTED not in found[0]
    assert ENCODED not in found[0]


def test_what_an_earlier_version_put_into_the_state_of_terraform_leaves_it(api_server: Access, secret: str) -> None:
    names = {"api_version": "v1", "kind": "Secret", "name": "keys", "namespace": secret}
    state: Any = {"id": "a/1", "object_ref": names, "wait_for": {"field": "metadata.annotations"}, "result": PLANTED}

    async def refreshed(session: ClusterSession) -> InstanceState | None:
        resource = WaitResource(cast("ClusterConnections", _Connections(session)))
        return await resource.read(InstanceState(state), CallContext())

    after = in_cluster(api_server, refreshed)

    assert after is not None
    assert after.state["result"] is None
    assert PLANTED not in str(after)


def test_a_data_source_reads_no_copy_of_a_secret(api_server: Access, secret: str) -> None:
    async def read(session: ClusterSession) -> object:
        source = ObjectDataSource(cast("ClusterConnections", _Connections(session)))
        names = {"api_version": "v1", "kind": "Secret", "name": "keys", "namespace": secret}
        return await source.read({**names, "cluster": None, "optional": None}, CallContext())

    shown = str(in_cluster(api_server, read))

    assert "keys" in shown
    assert PLANTED not in shown
    assert ENCODED not in shown


# --- KubernetesObjects, in a store that belongs to one person ---------------------------------------------------------


def test_the_kind_of_the_live_object_decides(api_server: Access, namespace: str) -> None:
    """The manifest says no kind: a reference yields it, once it was accepted."""
    harness = ObjectHarness(api_server, namespace, environment(api_server.kubeconfig))
    try:
        harness.settle(config_map("word", kind="Secret"), "word", waitFor={"field": "data.kind"})
        ref = {"$ref": {"kind": "KubernetesObject", "name": "word", "path": "data.kind"}}
        metadata = {"name": "hidden", "namespace": namespace}
        hidden = {"apiVersion": "v1", "kind": ref, "metadata": metadata, "stringData": {"key": PLANTED}}
        manifest: dict[str, Any] = {
            "apiVersion": "setpoint.dev/v1alpha1",
            "kind": "KubernetesObject",
            "metadata": {"name": "hidden", "namespace": namespace},
            "spec": {"manifest": hidden, "waitFor": {"field": "data.key"}},
        }
        # As kubectl applies it: no command has checked it.
        harness.run(harness.store.apply(manifest))

        outcome = harness.step_until_done("hidden")

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, WaitFailed)
        assert api_server.call("GET", f"/api/v1/namespaces/{namespace}/secrets/hidden").body["data"] == {"key": ENCODED}
        status = str(harness.status("hidden"))
        assert "'state': 'unknown'" in status
        assert PLANTED not in status
        assert ENCODED not in status
    finally:
        harness.close()
