"""A lease that many hold in common, as processes do that agree on the number of shards."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.engine.ports import Lease, SystemClock
from setpoint.stores.kubernetes.factory import ClusterAddress, open_kubernetes
from tests.cluster.access import Access

MANY = 6
ROUNDS = 3


class OwnClock(SystemClock):
    """No two of them ever say the same: a renewal that says nothing new would change nothing, and cross no other."""

    _seconds = itertools.count()

    def now(self) -> str:
        """See Clock."""
        return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(self._seconds))).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )


def test_all_who_hold_it_can_renew_it_at_the_same_moment(api_server: Access, namespace: str) -> None:
    connection, place = connection_from_files([api_server.kubeconfig]), ClusterAddress(namespace=namespace)

    async def main() -> list[Lease | None]:
        stores = [
            open_kubernetes(place, KubernetesClient(connection), (), OwnClock(), long_running=True) for _ in range(MANY)
        ]
        found: list[Lease | None] = []
        for _ in range(ROUNDS):
            found += await asyncio.gather(*(store.acquire("setpoint-layout", "4-shards", 15) for store in stores))
        for store in stores:
            await store.close()
        return found

    assert [lease and lease.fence for lease in asyncio.run(main())] == [1] * MANY * ROUNDS
