"""Call budgets by connection and credentials: what the server of a tenant answers stops that tenant alone."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest

from setpoint.clients.google.errors import retry_after
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.errors import error_for_response, outcome_of
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.clients.ratelimit.circuit_breaker import BreakerState, Throttled
from setpoint.clients.ratelimit.fair_queue import on_behalf_of
from setpoint.clients.ratelimit.limiter import MAX_BUDGETS, MAX_IN_FLIGHT, QuotaBudgets
from setpoint.clients.sockets import address_policy
from setpoint.engine.kind import ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.errors import RemoteUnavailable
from setpoint.kinds.kubernetes_object.clusters import KUBECONFIG, Clusters
from setpoint.kinds.kubernetes_object.spec import KubernetesObjectSpec
from tests.clients.fake_api_server import FakeCredentials
from tests.clients.scripted_http import ScriptedHttp, response
from tests.security.tenant_servers import kubeconfig_of

SERVER = "https://api.example.com:6443"
CONNECTION = ClusterConnection("context prod", SERVER)
PODS = Endpoint("", "v1", "pods", "shop")
LIST = response(200, {"metadata": {}, "items": []}, Content_Type="application/json")
TOO_MANY = response(429, {"kind": "Status"}, Content_Type="application/json", Retry_After="3600")
DOWN = response(503, {"kind": "Status"}, Content_Type="application/json")


class BlockedHttp(HttpClient):
    """Never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[HttpRequest] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        await asyncio.Event().wait()
        raise AssertionError


def client(http: HttpClient, budgets: QuotaBudgets, scope: str = "") -> KubernetesClient:
    return KubernetesClient(CONNECTION, FakeCredentials(), http, budgets, budget_scope=scope)


async def fail_often(tenant: KubernetesClient) -> None:
    """Calls of many resources, all of which fail: what opens a breaker."""
    for number in range(30):
        with on_behalf_of(number, failed=False), pytest.raises(RemoteUnavailable):
            await tenant.list(PODS)


async def is_throttled(tenant: KubernetesClient) -> None:
    with pytest.raises(RemoteUnavailable):
        await tenant.list(PODS)


async def takes_all_places(tenant: KubernetesClient) -> None:
    """As many calls as may be under way at once, none of which ends."""
    for number in range(2 * MAX_IN_FLIGHT):
        _running.append(asyncio.ensure_future(tenant.list(PODS.named(f"p{number}"))))
    for _ in range(5):
        await asyncio.sleep(0)


_running: list[asyncio.Future[object]] = []


@pytest.mark.parametrize(
    ("http", "attack"),
    [(ScriptedHttp(TOO_MANY), is_throttled), (ScriptedHttp(DOWN), fail_often), (BlockedHttp(), takes_all_places)],
    ids=["429 for an hour", "breaker", "no answer"],
)
@pytest.mark.parametrize("scope", ["secret:shop/access/kubeconfig", "system:serviceaccount:shop:setpoint"])
def test_a_tenant_at_the_address_of_the_api_server_stops_no_call_of_the_operator(
    http: HttpClient, attack: Callable[[KubernetesClient], object], scope: str
) -> None:
    async def main() -> list[HttpRequest]:
        budgets, answers = QuotaBudgets(), ScriptedHttp(LIST)
        own, other = client(answers, budgets), client(answers, budgets, "secret:other/access/kubeconfig")
        tenant = client(http, budgets, scope)
        await attack(tenant)  # type: ignore[misc]  # each is a coroutine function
        async with asyncio.timeout(60):
            for one in (own, other, own.unthrottled()):
                await one.list(PODS)
        breakers = {one.service: one.breaker for one in budgets.snapshot().limiters}
        assert breakers["kubernetes api.example.com:6443"] is BreakerState.CLOSED
        for task in _running:
            task.cancel()
        _running.clear()
        return answers.requests

    assert len(asyncio.run(main())) == 3


def test_the_same_client_has_budgets_of_another_scope() -> None:
    async def main() -> int:
        http = ScriptedHttp(TOO_MANY, LIST)
        own = client(http, QuotaBudgets())
        await is_throttled(own.in_scope("tenant"))
        await own.list(PODS)
        return len(http.requests)

    assert asyncio.run(main()) == 2


# --- The clients of resources -----------------------------------------------------------------------------------------


def client_of(
    clusters: Clusters, namespace: str, name: str, context: str = "", server: str = SERVER
) -> KubernetesClient:
    """The client of the cluster that a resource names by a kubeconfig in a Secret."""
    spec = msgspec.convert(
        {
            "manifest": {},
            "cluster": {
                "kubeconfig": {"valueFrom": {"secretKeyRef": {"name": name, "key": "kubeconfig"}}},
                "context": context,
            },
        },
        KubernetesObjectSpec,
    )
    resource = Resource({"metadata": {"name": "one", "namespace": namespace}})
    text = kubeconfig_of({"server": server}).replace("name: c\n", f"name: {context or 'c'}\n")
    resolved = ResolvedReferences(secrets={KUBECONFIG: text})
    cluster_id = clusters.cluster_id_of(spec, resource, resolved)
    return asyncio.run(clusters.connect(cluster_id)).client


def cluster_service(clusters: Clusters, namespace: str, name: str, context: str = "", server: str = SERVER) -> str:
    """The service that calls to that cluster count against."""
    found = client_of(clusters, namespace, name, context, server)
    return next(key.service for key, budget in found.budgets._budgets.items() if budget is found._reads)


def test_budgets_of_tenants_are_apart_by_namespace_secret_context_and_server() -> None:
    clusters = Clusters(budgets=QuotaBudgets(), addresses=address_policy({}))

    services = [
        cluster_service(clusters, "shop", "access"),
        cluster_service(clusters, "bank", "access"),
        cluster_service(clusters, "shop", "other"),
        cluster_service(clusters, "shop", "access", server="https://other.example.com"),
    ]

    assert services == [
        "kubernetes api.example.com:6443 secret:shop/access/kubeconfig",
        "kubernetes api.example.com:6443 secret:bank/access/kubeconfig",
        "kubernetes api.example.com:6443 secret:shop/other/kubeconfig",
        "kubernetes other.example.com secret:shop/access/kubeconfig",
    ]


def test_a_store_of_one_person_has_one_budget_for_each_server() -> None:
    clusters = Clusters(budgets=QuotaBudgets())

    assert {cluster_service(clusters, "shop", name) for name in ("access", "other")} == {
        "kubernetes api.example.com:6443"
    }


def test_a_changed_kubeconfig_does_not_keep_what_the_one_before_was_allowed() -> None:
    """A name that is allowed is reached wherever it leads: the connections to it are checked no further."""
    clusters = Clusters(budgets=QuotaBudgets(), addresses=address_policy({}, ["api.example.com"]))

    allowed = client_of(clusters, "shop", "access").http
    other = client_of(clusters, "shop", "access", server="https://other.example.com").http
    again = client_of(clusters, "shop", "access", server="https://third.example.com").http

    assert allowed._sockets._addresses is None
    assert other._sockets._addresses is clusters.addresses
    assert again is other


# --- How many there are -----------------------------------------------------------------------------------------------


def test_thousands_of_kubeconfigs_do_not_fill_the_memory() -> None:
    async def main() -> QuotaBudgets:
        budgets, http = QuotaBudgets(), ScriptedHttp(LIST)
        own = client(http, budgets)
        for number in range(3 * MAX_BUDGETS):
            client(http, budgets, f"secret:shop/access-{number}/kubeconfig")
            if number % 100 == 0:
                await own.list(PODS)
        return budgets

    snapshot = asyncio.run(main()).snapshot()

    assert len(snapshot.budgets) == MAX_BUDGETS
    assert len(snapshot.limiters) <= MAX_BUDGETS
    # What the operator uses all the time is not what is forgotten.
    assert ("kubernetes api.example.com:6443", "", "reads") in [one.key for one in snapshot.budgets]


# --- Retry-After ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["301", "3600", "9" * 400])
def test_a_long_retry_after_is_cut(header: str) -> None:
    answer = HttpResponse(429, {"Retry-After": header}, b"")

    error = error_for_response("GET /x", answer)

    assert isinstance(error, RemoteUnavailable)
    assert error.after == 300.0
    assert outcome_of(answer) == Throttled(300.0)


@pytest.mark.parametrize(("seconds", "after"), [(7, 7.0), (10**400, 300.0), (-(10**400), None), (0, None)])
def test_the_seconds_of_a_status_are_cut(seconds: int, after: float | None) -> None:
    body = f'{{"kind": "Status", "details": {{"retryAfterSeconds": {seconds}}}}}'.encode()

    error = error_for_response("GET /x", HttpResponse(503, {"Content-Type": "application/json"}, body))

    assert isinstance(error, RemoteUnavailable)
    assert error.after == after


@pytest.mark.parametrize("header", ["9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_google_is_waited_for_an_hour_at_most(header: str) -> None:
    assert retry_after(HttpResponse(503, {"Retry-After": header}, b""), datetime.now(UTC)) == 3600.0
