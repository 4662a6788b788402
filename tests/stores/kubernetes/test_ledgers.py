"""Ledgers in a cluster: texts in annotations of Leases, by shard, on a real API server."""

import asyncio
import secrets
from base64 import b64encode

import pytest

from setpoint.errors import StoreError
from setpoint.runtime.notify.ledger import Ledger, LedgerStore
from setpoint.stores.kubernetes.store import KubernetesStore
from tests.cluster.access import Access

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/notified-by-setpoint"


@pytest.fixture(autouse=True)
def no_leases(prepared: Access) -> None:
    for part in (0, 3):
        prepared.call("DELETE", f"{LEASE}-{part}")


def test_each_part_is_read_back_by_another_process(store: KubernetesStore, loop: asyncio.Runner) -> None:
    async def main() -> list[bytes | None]:
        await store.ledgers.write(0, b"one")
        await store.ledgers.write(3, b"two")
        await store.ledgers.write(0, b"three " * 50_000)
        return [await store.ledgers.read(part) for part in (0, 3, 4)]

    assert isinstance(store, LedgerStore)
    assert loop.run(main()) == [b"three " * 50_000, b"two", None]


def test_writers_at_the_same_time_both_get_their_turn(store: KubernetesStore, loop: asyncio.Runner) -> None:
    texts = [f"{number}".encode() for number in range(3)]

    async def main() -> bytes | None:
        await asyncio.gather(*(store.ledgers.write(0, text) for text in texts))
        return await store.ledgers.read(0)

    assert loop.run(main()) in texts


def test_what_does_not_fit_is_an_error_and_leaves_what_was_there(store: KubernetesStore, loop: asyncio.Runner) -> None:
    loop.run(store.ledgers.write(0, b"one"))

    with pytest.raises(StoreError, match=r"the Lease notified-by-setpoint-0 cannot be written"):
        loop.run(store.ledgers.write(0, secrets.token_bytes(300_000)))

    assert loop.run(store.ledgers.read(0)) == b"one"


def test_the_leases_are_none_of_a_replica(store: KubernetesStore, loop: asyncio.Runner) -> None:
    loop.run(store.ledgers.write(0, b"one"))

    assert loop.run(store.leases("setpoint-")) == ()


@pytest.mark.parametrize("text", ["?", b64encode(b"plain").decode()])
def test_a_text_of_another_writer_is_damaged(
    text: str, store: KubernetesStore, prepared: Access, loop: asyncio.Runner
) -> None:
    loop.run(store.ledgers.write(0, b"one"))
    patch = {"metadata": {"annotations": {"setpoint.dev/notified": text}}}
    assert prepared.call("PATCH", f"{LEASE}-0", patch).status == 200

    with pytest.raises(StoreError, match=r"is damaged .*: remove the Leases notified-by-setpoint-"):
        loop.run(Ledger(store.ledgers, lambda _ref: 0).hold({0}))
