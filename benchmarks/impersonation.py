"""The cost of acting as a ServiceAccount: the requests of a step for an object, on a real API server, by the clock."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Final

from benchmarks.scenarios import Measurement, Unit, compared
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_environment
from setpoint.clients.kubernetes.requests import ApiWriteOptions, Endpoint
from setpoint.clients.kubernetes.service_accounts import ServiceAccountClients, ServiceAccountName
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.tenancy.tenants import DEFAULT_SERVICE_ACCOUNT
from tests.cluster.access import Access

GET: Final = "a step for an object in sync: the GET, on an API server: by the clock"
APPLY: Final = "a step for an object that changed: the server-side apply, on an API server: by the clock"
AS_ITSELF: Final = "as the process itself"
AS_TENANT: Final = "as the ServiceAccount of a tenant"
_ROUNDS: Final = 5
_OPTIONS: Final = ApiWriteOptions("setpoint")


def impersonation(access: Access, requests: int) -> tuple[Measurement, ...]:
    """The time of each request, the best of some rounds in which both take turns; a round has so many `requests`."""
    return asyncio.run(_measured(access.new_namespace(), access.kubeconfig, requests))


async def _measured(namespace: str, kubeconfig: Path, requests: int) -> tuple[Measurement, ...]:
    client = KubernetesClient(connection_from_environment({"KUBECONFIG": str(kubeconfig)}))
    try:
        accounts = ServiceAccountClients(client)

        async def acting() -> KubernetesClient:
            # As each step does: whether the account is there is asked for once in a while.
            return await accounts.acting_as(ServiceAccountName(namespace, DEFAULT_SERVICE_ACCOUNT))

        async def itself() -> KubernetesClient:
            return client

        callers = {AS_ITSELF: itself, AS_TENANT: acting}
        endpoint = Endpoint("", "v1", "configmaps", namespace, "measured")
        await client.apply(endpoint, _config_map(namespace, 0), _OPTIONS)
        numbers = iter(range(1, 10**9))

        async def get(caller: KubernetesClient) -> object:
            return await caller.get(endpoint)

        async def apply(caller: KubernetesClient) -> object:
            return await caller.apply(endpoint, _config_map(namespace, next(numbers)), _OPTIONS)

        gets = await _best(get, callers, requests)
        applies = await _best(apply, callers, requests)
        return (*compared(GET, gets, Unit.SECONDS), *compared(APPLY, applies, Unit.SECONDS))
    finally:
        await client.close()


async def _best(
    request: Callable[[KubernetesClient], Awaitable[object]],
    callers: Mapping[str, Callable[[], Awaitable[KubernetesClient]]],
    requests: int,
) -> Mapping[str, float]:
    best: dict[str, float] = {}
    for _ in range(_ROUNDS):
        for name, caller in callers.items():
            began = perf_counter()
            for _ in range(requests):
                await request(await caller())
            seconds = (perf_counter() - began) / requests
            best[name] = min(seconds, best.get(name, seconds))
    return best


def _config_map(namespace: str, number: int) -> JsonObject:
    metadata: JsonObject = {"name": "measured", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"number": str(number)}}
