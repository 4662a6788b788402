"""The client on a real API server that is restarted, frozen and compacted."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from setpoint.clients.kubernetes.client import KubernetesClient, ObjectPage
from setpoint.clients.kubernetes.requests import Endpoint, PageRequest
from setpoint.clients.kubernetes.watch import WatchEventType, WatchTimeouts, watch
from setpoint.errors import RemoteExpired, RemoteUnavailable
from tests.clients.api_server_client import TIMEOUT, config_map, config_maps, names, summary, tree, with_client
from tests.cluster.server import Cluster


@pytest.fixture
def namespace(outage_server: Cluster) -> str:
    return outage_server.access.new_namespace()


async def _listed(client: KubernetesClient, maps: Endpoint) -> ObjectPage:
    """The list, as soon as a server answers: it may be killed before the first request."""
    while True:
        with contextlib.suppress(RemoteUnavailable):
            return await client.list(maps)
        await asyncio.sleep(0.05)


async def _names_over_time(client: KubernetesClient, maps: Endpoint) -> AsyncGenerator[str, None]:
    """The names of a list, then those of watch events; a new list after the watch has expired."""
    while True:
        page = await _listed(client, maps)
        for name in names(page.items):
            yield name
        with contextlib.suppress(RemoteExpired):
            async with aclosing(watch(client, maps, page.resource_version)) as events:
                async for event in events:
                    if event.type is not WatchEventType.BOOKMARK:
                        yield summary(event)[1]


def test_misses_nothing_while_the_api_server_is_killed_and_started_again(
    outage_server: Cluster, namespace: str
) -> None:
    maps = config_maps(namespace)

    async def change(client: KubernetesClient) -> None:
        await client.create(maps, config_map("before"))
        await asyncio.to_thread(outage_server.api_server.kill)
        with pytest.raises(RemoteUnavailable):
            await client.get(maps.named("before"))
        await asyncio.to_thread(outage_server.start)
        await client.create(maps, config_map("after"))

    async def use(client: KubernetesClient) -> set[str]:
        seen: set[str] = set()
        async with asyncio.timeout(TIMEOUT), aclosing(_names_over_time(client, maps)) as followed:
            changing = asyncio.ensure_future(change(client))
            async for name in followed:
                seen.add(name)
                if name == "after":
                    break
            await changing
        return seen

    assert with_client(outage_server.access.kubeconfig, use) == {"before", "after"}


def test_a_watch_of_a_frozen_api_server_is_resumed_once_it_answers(outage_server: Cluster, namespace: str) -> None:
    maps = config_maps(namespace)

    async def use(client: KubernetesClient) -> tuple[list[tuple[str, str]], int]:
        since = (await client.list(maps)).resource_version
        waiting = watch(client, maps, since, timeouts=WatchTimeouts(idle_timeout=0.3))
        async with asyncio.timeout(TIMEOUT), aclosing(waiting) as events:
            await client.create(maps, config_map("before"))
            events_seen = [summary(await anext(events))]
            outage_server.api_server.freeze()
            next_one = asyncio.ensure_future(anext(events))
            # A later timer of the same loop: by then the idle timeout has passed.
            await asyncio.sleep(0.6)
            outage_server.api_server.thaw()
            await client.create(maps, config_map("after"))
            events_seen.append(summary(await next_one))
        (host,) = {host for _, host, _ in client.http.counts}
        return events_seen, client.http.counts["GET", host, "200"]

    events_seen, answers = with_client(outage_server.access.kubeconfig, use)

    assert events_seen == [("ADDED", "before"), ("ADDED", "after")]
    # The list, the watch, and the resumed watch.
    assert answers >= 3


def test_lists_and_watches_from_before_a_compaction_expire(outage_server: Cluster, namespace: str) -> None:
    maps = config_maps(namespace)

    async def use(client: KubernetesClient) -> list[tuple[list[str], bool]]:
        made = [tree(await client.create(maps, config_map(name))) for name in ("one", "two", "three")]
        first = await client.list(maps, paging=PageRequest(1))
        pages = client.pages(maps, size=1)
        seen = [await anext(pages)]
        await client.create(maps, config_map("zero"))
        await asyncio.to_thread(outage_server.compact)
        # Until then the watch cache may still have what etcd has compacted.
        await asyncio.to_thread(outage_server.restart_api_server)
        with pytest.raises(RemoteExpired):
            await client.list(maps, paging=PageRequest(1, first.token))
        async with (
            asyncio.timeout(TIMEOUT),
            aclosing(watch(client, maps, made[0]["metadata"]["resourceVersion"])) as old,
        ):
            with pytest.raises(RemoteExpired, match=r"^watch /api/v1/namespaces/.*/configmaps: 410: Expired: "):
                await anext(old)
        seen += [page async for page in pages]
        return [(names(page.items), page.is_first) for page in seen]

    assert with_client(outage_server.access.kubeconfig, use) == [
        (["one"], True),
        (["one", "three", "two", "zero"], True),
    ]
