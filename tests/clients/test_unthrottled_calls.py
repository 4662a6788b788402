"""Unthrottled calls: they are sent during a pause and while the breaker is open."""

import asyncio

import pytest

from setpoint.clients.http import HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.clients.ratelimit.circuit_breaker import BreakerState
from setpoint.errors import RemoteUnavailable
from tests.clients.fake_api_server import FakeCredentials
from tests.clients.scripted_http import ScriptedHttp, response

LEASES = Endpoint("coordination.k8s.io", "v1", "leases", "shop")
PODS = Endpoint("", "v1", "pods", "shop")


def _response(status: int, **headers: str) -> HttpResponse:
    return response(status, {"metadata": {}, "items": []}, Content_Type="application/json", **headers)


def _client(*answers: HttpResponse) -> tuple[KubernetesClient, ScriptedHttp]:
    http = ScriptedHttp(*answers)
    return KubernetesClient(ClusterConnection("context prod", "https://a.test"), FakeCredentials(), http), http


def test_unthrottled_calls_are_sent_during_a_pause() -> None:
    client, http = _client(_response(429, Retry_After="3600"), _response(200))

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(RemoteUnavailable):
                await client.list(PODS)
        await client.unthrottled().list(LEASES)

    asyncio.run(main())

    # The second list of pods was not sent.
    assert [request.url.partition("?")[0].rpartition("/")[2] for request in http.requests] == ["pods", "leases"]


def test_a_response_to_an_unthrottled_call_closes_the_breaker() -> None:
    client, _ = _client(_response(200))
    (limiter,) = client.budgets._limiters.values()

    async def main() -> BreakerState:
        limiter.breaker.state, limiter.breaker._next_probe = BreakerState.OPEN, float("inf")
        with pytest.raises(RemoteUnavailable):
            await client.list(PODS)
        await client.unthrottled().list(LEASES)
        return limiter.breaker.state

    assert asyncio.run(main()) is BreakerState.CLOSED


def test_unthrottled_calls_have_a_budget_of_their_own() -> None:
    client, _ = _client(_response(200))

    async def main() -> None:
        await client.list(PODS)
        await client.unthrottled().list(LEASES)

    asyncio.run(main())

    calls = {one.key.quota: one.calls for one in client.budgets.snapshot().budgets}
    assert calls == {"reads": 1, "writes": 0, "leases": 1}
