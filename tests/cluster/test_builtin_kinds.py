"""The kinds that are reached without discovery are served as the table says."""

import asyncio
from collections.abc import Sequence

from setpoint.clients.kubernetes.builtin_kinds import builtin_kinds
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
from tests.cluster.access import Access


def test_each_builtin_kind_is_served_with_its_plural_scope_and_verbs(api_server: Access) -> None:
    async def served() -> Sequence[ApiResource]:
        client = KubernetesClient(connection_from_files([api_server.kubeconfig], None))
        try:
            return (await Discovery(client).all_resources())[0]
        finally:
            await client.close()

    known, found = builtin_kinds(), {(one.api_version, one.kind): one for one in asyncio.run(served())}

    assert {key: (found[key].plural, found[key].namespaced) for key in known} == {
        key: (one.plural, one.namespaced) for key, one in known.items()
    }
    assert [key for key, one in known.items() if not one.verbs <= found[key].verbs] == []
