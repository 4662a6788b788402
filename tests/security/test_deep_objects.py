"""A tenant's object that an API server accepts, and that is too deep or too large, harms no other tenant's."""

import asyncio
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from setpoint.app import AppSettings, StoreAccess, open_app
from setpoint.clients.http_transport import MAX_RESPONSE_VARIABLE
from setpoint.core.conditions import ConditionType
from setpoint.engine.conditions import condition_of
from setpoint.engine.context import EngineContext
from setpoint.engine.ports import ResourceQuery
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import ManifestInvalid, NotJson
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.informer import Informer
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import config_map, environment
from tests.cluster.running.kubectl import install_kinds

PLURAL = "kubernetesobjects"
# Beyond what is accepted; beyond the stack of a decoder; and the deepest that an API server keeps.
DEPTHS = (300, 1_000, 9_900)


@pytest.fixture(scope="module")
def cluster(api_server: Access, kubectl_program: Path) -> Access:
    install_kinds(api_server, kubectl_program)
    return api_server


class Tenant:
    """A tenant of one namespace, who creates KubernetesObjects."""

    def __init__(self, access: Access) -> None:
        self.namespace = access.new_namespace()
        self._access = access
        self._path = f"/apis/{GROUP}/v1alpha1/namespaces/{self.namespace}/{PLURAL}"

    def create(self, name: str, manifest: str) -> ResourceRef:
        """Creates a resource with any JSON as its manifest."""
        text = (
            f'{{"apiVersion":"{GROUP}/v1alpha1","kind":"{NAME}","metadata":{{"name":"{name}"}},'
            f'"spec":{{"manifest":{manifest}}}}}'
        )
        # The response is as deep as the request: it is not decoded.
        connection = HTTPSConnection(urlsplit(self._access.url).netloc, context=self._access.tls())
        connection.request("POST", self._path, text, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 201
        connection.close()
        return ResourceRef(GROUP, NAME, self.namespace, name)

    def create_deep(self, depth: int) -> ResourceRef:
        """A resource whose manifest is nested so deep, and refers to another."""
        inner = '{"$ref":{"kind":"SQLInstance","name":"db"}}'
        return self.create(f"deep-{depth}", '{"a":' * depth + inner + "}" * depth)

    def create_plain(self, name: str) -> ResourceRef:
        return self.create(name, str(config_map(a="1")).replace("'", '"'))


def settings(access: Access, **variables: str) -> AppSettings:
    return AppSettings("kubernetes", environment={**environment(access.kubeconfig), **variables})


def test_deep_objects_stop_neither_a_list_nor_a_watch_of_others(cluster: Access) -> None:
    attacker, victim = Tenant(cluster), Tenant(cluster)
    deep = [attacker.create_deep(depth) for depth in DEPTHS]
    listed = victim.create_plain("listed")

    async def main() -> tuple[set[ResourceRef], list[Any]]:
        async with open_app(settings(cluster), StoreAccess.WRITE) as opened:
            engine = opened.engine
            index = ResourceIndex(engine.resource_types)
            informer = Informer(engine.store, index, engine.clock, lambda _event: None)
            running = asyncio.create_task(informer.run())
            await _until(informer.synced.is_set, running)
            found = {ref for ref in (listed, *deep) if index.get(ref) is not None}
            watched = [await asyncio.to_thread(Tenant(cluster).create_deep, depth) for depth in DEPTHS]
            last = await asyncio.to_thread(victim.create_plain, "watched")
            await _until(lambda: index.get(last) is not None, running)
            running.cancel()
            return found, [await _message(ref, engine) for ref in (*deep, *watched)]

    found, messages = asyncio.run(main())

    assert listed in found
    assert {message.partition(": ")[2] for message in messages} == {
        "its manifest is nested deeper than 254 levels: write less of it, in several resources"
    }


def test_the_author_of_a_deep_object_is_told_and_can_delete_it(cluster: Access) -> None:
    ref = Tenant(cluster).create_deep(9_900)

    async def main() -> tuple[object, str, object]:
        async with open_app(settings(cluster), StoreAccess.WRITE) as opened:
            store = opened.engine.store
            outcome = await step(ref, opened.engine)
            told = await store.get(ref)
            assert told is not None
            ready = condition_of(told, ConditionType.READY)
            assert ready is not None
            await store.delete(ref)
            return outcome, ready.message, await store.get(ref)

    outcome, message, left = asyncio.run(main())

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ManifestInvalid)
    assert "its manifest is nested deeper than 254 levels" in message
    assert left is None


def test_a_page_of_large_objects_is_read_in_smaller_pages(cluster: Access) -> None:
    tenant = Tenant(cluster)
    large = '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"' + "x" * 600_000 + '"}}'
    created = {tenant.create(f"large-{number}", large) for number in range(3)}

    async def main() -> set[ResourceRef]:
        # Two of them do not fit into one response.
        async with open_app(settings(cluster, **{MAX_RESPONSE_VARIABLE: "1"}), StoreAccess.READ) as opened:
            listing = await opened.engine.store.list(ResourceQuery(namespace=tenant.namespace))
            return {one.ref for one in listing.resources if one.ref.kind == NAME}

    assert asyncio.run(main()) == created


async def _until(condition: Any, running: "asyncio.Task[None]") -> None:
    while not condition():
        if running.done():
            running.result()
        await asyncio.sleep(0.05)


async def _message(ref: ResourceRef, engine: EngineContext) -> str:
    resource = await engine.store.get(ref)
    assert resource is not None
    with pytest.raises(NotJson) as refused:
        _ = resource.spec
    return str(refused.value)
