"""Where a process in a cluster has its leases, and where others look for them."""

import asyncio
from collections.abc import Mapping

import pytest

from setpoint.clients.http import Answer, HttpClient, Request
from setpoint.clients.kube_connection import Connection
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.engine.ports import Store
from setpoint.stores.kubernetes.opening import open_kubernetes, place_of
from tests.engine.clock import FakeClock


class Empty(HttpClient):
    """A cluster in which there is nothing; it knows what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []

    async def send(self, request: Request) -> Answer:
        self.paths.append(request.url.removeprefix("https://a.test").partition("?")[0])
        return Answer(200, {"Content-Type": "application/json"}, b'{"metadata": {"resourceVersion": "1"}, "items": []}')


def _looked_at(url: str, environment: Mapping[str, str], *, lasting: bool) -> list[str]:
    """The namespaces whose leases are read."""
    http = Empty()
    client = KubernetesClient(Connection("context prod", "https://a.test"), http=http)
    store = open_kubernetes(place_of(url, environment), client, (), FakeClock(), lasting=lasting)
    asyncio.run(_leases(store))
    return [path.split("/")[5] for path in http.paths]


async def _leases(store: Store) -> None:
    await store.leases("setpoint-")
    await store.close()


@pytest.mark.parametrize(
    ("url", "environment", "namespace"),
    [
        ("kubernetes", {}, "setpoint-system"),
        ("kubernetes", {"POD_NAMESPACE": "keepers"}, "keepers"),
        ("kubernetes?namespace=team-a", {}, "team-a"),
        ("kubernetes?namespace=team-a", {"POD_NAMESPACE": "keepers"}, "keepers"),
    ],
)
def test_whoever_runs_has_its_leases_where_its_pod_is_or_where_its_work_is(
    url: str, environment: dict[str, str], namespace: str
) -> None:
    assert _looked_at(url, environment, lasting=True) == [namespace]


def test_whoever_wants_to_know_whether_somebody_runs_looks_where_it_may_be() -> None:
    assert _looked_at("kubernetes", {}, lasting=False) == ["setpoint-system"]
    assert _looked_at("kubernetes?namespace=team-a", {}, lasting=False) == ["team-a", "setpoint-system"]
