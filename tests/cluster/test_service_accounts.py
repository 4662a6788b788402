"""Clients that act as ServiceAccounts, on a real API server."""

import pytest

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.clients.kubernetes.service_accounts import RECHECK_SECONDS, ServiceAccountClients, ServiceAccountName
from setpoint.errors import ServiceAccountNotFound
from tests.clients.api_server_client import tree, with_client
from tests.clients.manual_time import ManualClock
from tests.cluster.access import Access

REVIEWS = Endpoint("authentication.k8s.io", "v1", "selfsubjectreviews")


async def identity(client: KubernetesClient) -> tuple[str, set[str]]:
    """The user and the groups that the API server sees."""
    user_info = tree(await client.create(REVIEWS, {}))["status"]["userInfo"]
    return user_info["username"], set(user_info.get("groups", ()))


def test_a_client_has_the_identity_of_the_account_alone(api_server: Access, namespace: str) -> None:
    async def acting(client: KubernetesClient) -> tuple[str, set[str]]:
        account = ServiceAccountName(namespace, "setpoint")
        return await identity(await ServiceAccountClients(client).acting_as(account))

    username, groups = with_client(api_server.kubeconfig, acting)

    assert username == f"system:serviceaccount:{namespace}:setpoint"
    assert groups == {"system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"}


def test_an_account_that_does_not_exist_is_not_acted_as(api_server: Access) -> None:
    namespace = api_server.new_namespace(is_tenant=False)

    async def acting(client: KubernetesClient) -> None:
        await ServiceAccountClients(client).acting_as(ServiceAccountName(namespace, "setpoint"))

    missing = rf"ServiceAccount {namespace}/setpoint does not exist.*`setpoint tenant {namespace}`"
    with pytest.raises(ServiceAccountNotFound, match=missing):
        with_client(api_server.kubeconfig, acting)


def test_a_deleted_account_is_not_acted_as_for_long_though_role_bindings_still_name_it(
    api_server: Access, namespace: str
) -> None:
    account, clock = ServiceAccountName(namespace, "setpoint"), ManualClock()

    async def acting(client: KubernetesClient) -> None:
        accounts = ServiceAccountClients(client, clock)
        await accounts.acting_as(account)
        deleted = api_server.call("DELETE", f"/api/v1/namespaces/{namespace}/serviceaccounts/setpoint")
        assert deleted.status == 200
        clock.advance(RECHECK_SECONDS)
        with pytest.raises(ServiceAccountNotFound):
            await accounts.acting_as(account)
        # Nor is the client from before used again.
        with pytest.raises(ServiceAccountNotFound):
            await accounts.acting_as(account)

    with_client(api_server.kubeconfig, acting)
