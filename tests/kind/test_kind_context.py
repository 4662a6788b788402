"""Clients with a lifecycle, Secrets and credentials: what a kind is handed in."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from setpoint.clients.write_guard import BlockedWrites, process_guarded_by
from setpoint.errors import DependencyInvalid, DependencyNotFound, NotRecorded, UserError, WriteBlocked
from setpoint.kind import KindContext, Resource, ResourceRef, Tenant
from setpoint.kind.kind_context import KindServices


@dataclass
class Pools:
    """Makes clients, and notes what happens to them, with the task that did it."""

    events: list[str] = field(default_factory=list)
    tasks: set[object] = field(default_factory=set)
    failures: list[Exception] = field(default_factory=list)
    gate: asyncio.Event | None = None

    @asynccontextmanager
    async def open(self, name: str = "pool") -> AsyncIterator[str]:
        """A client."""
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            raise self.failures.pop()
        task = asyncio.current_task()
        self.events.append(f"open {name}")
        try:
            yield name
        finally:
            assert task is asyncio.current_task()
            self.events.append(f"close {name}")


def test_a_client_is_opened_once_and_closed_with_the_context_the_newest_first() -> None:
    pools = Pools()

    async def main() -> list[str]:
        async with KindContext() as context:
            found = [await context.client("a", pools.open) for _ in range(3)]
            found.append(await context.client("b", lambda: pools.open("other")))
            assert pools.events == ["open pool", "open other"]
        return found

    assert asyncio.run(main()) == ["pool", "pool", "pool", "other"]
    assert pools.events == ["open pool", "open other", "close other", "close pool"]


def test_callers_at_the_same_time_share_one_opening_and_a_cancelled_one_does_not_stop_it() -> None:
    pools = Pools()

    async def main() -> list[str]:
        pools.gate = asyncio.Event()
        async with KindContext() as context:
            tasks = [asyncio.create_task(context.client("a", pools.open)) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            pools.gate.set()
            await asyncio.wait(tasks)
            assert tasks[0].cancelled()
            return [one.result() for one in tasks[1:]]

    assert asyncio.run(main()) == ["pool", "pool"]
    assert pools.events == ["open pool", "close pool"]


def test_an_opening_that_failed_is_tried_again() -> None:
    pools = Pools(failures=[OSError("not now")])

    async def main() -> str:
        async with KindContext() as context:
            with pytest.raises(OSError, match="not now"):
                await context.client("a", pools.open)
            return await context.client("a", pools.open)

    assert asyncio.run(main()) == "pool"


def test_a_context_that_is_closed_during_an_opening_waits_for_nothing() -> None:
    pools = Pools()

    async def main() -> None:
        pools.gate = asyncio.Event()
        async with KindContext() as context:
            task = asyncio.create_task(context.client("a", pools.open))
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert pools.events == []


def test_an_error_of_closing_is_raised_once_every_client_is_closed() -> None:
    pools = Pools()

    @asynccontextmanager
    async def stubborn() -> AsyncIterator[str]:
        yield "stubborn"
        raise OSError("does not close")

    async def main() -> None:
        async with KindContext() as context:
            await context.client("a", pools.open)
            await context.client("b", stubborn)

    with pytest.raises(OSError, match="does not close"):
        asyncio.run(main())
    assert pools.events == ["open pool", "close pool"]


def test_tenants_share_clients_and_previews_have_their_own() -> None:
    pools = Pools()

    async def main() -> None:
        async with KindContext() as context:
            await context.client("a", pools.open)
            await context.for_tenant(Tenant("n")).client("a", pools.open)
            await replace(context, is_read_only=True).client("a", pools.open)

    asyncio.run(main())
    assert pools.events.count("open pool") == 2


def test_a_recorded_world_has_no_clients_of_a_kinds_own() -> None:
    pools = Pools()

    async def main() -> None:
        await KindContext(is_recorded=True).client("a", pools.open)

    with pytest.raises(NotRecorded, match="only requests by HTTP are recorded"):
        asyncio.run(main())
    assert pools.events == []


def test_in_a_preview_a_client_of_a_kinds_own_connects_inside_reading_alone() -> None:
    blocked = BlockedWrites()

    async def main() -> list[str]:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        seen: list[str] = []
        async with server, KindContext(is_read_only=True) as context:
            with process_guarded_by(blocked):
                with context.reading():
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    seen.append("connected")
                    writer.close()
                    await writer.wait_closed()
                with pytest.raises(WriteBlocked):
                    await asyncio.open_connection("127.0.0.1", port)
        return seen

    assert asyncio.run(main()) == ["connected"]
    assert [one.method for one in blocked.writes] == ["connect"]


# --- Secrets ----------------------------------------------------------------------------------------------------------


def secret(ref: ResourceRef) -> Resource:
    """A Secret with the key `token`."""
    data: dict[str, Any] = {"token": base64.b64encode(f"of {ref.namespace}".encode()).decode()}
    return Resource({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": ref.name}, "data": data})


async def _read(ref: ResourceRef) -> Resource | None:
    return secret(ref) if ref.name == "there" else None


SERVICES = KindServices(read_secret=_read)


def test_a_secret_is_that_of_the_tenants_own_namespace() -> None:
    context = KindContext(services=SERVICES)

    assert asyncio.run(context.secret("there", "token")) == "of default"
    assert asyncio.run(context.secret("there", "token", "any")) == "of any"
    assert asyncio.run(context.for_tenant(Tenant("n")).secret("there", "token")) == "of n"


def test_a_secret_of_another_tenant_is_refused() -> None:
    context = KindContext(services=SERVICES, tenant=Tenant("n"))

    with pytest.raises(UserError, match="Secret other/there is not one of the namespace n"):
        asyncio.run(context.secret("there", "token", "other"))


def test_a_secret_or_key_that_is_not_there_is_named() -> None:
    context = KindContext(services=SERVICES)

    with pytest.raises(DependencyNotFound, match="Secret default/gone was not found"):
        asyncio.run(context.secret("gone", "token"))
    with pytest.raises(DependencyInvalid, match="key 'other' was not found in Secret default/there"):
        asyncio.run(context.secret("there", "other"))


def test_a_credential_is_read_beside_the_environment_that_is_recorded() -> None:
    context = KindContext({"A": "1"}, credentials={"TOKEN": "t"})

    assert (context.credential("TOKEN"), context.credential("A"), KindContext({"T": "t"}).credential("T")) == (
        *("t", "", "t"),
    )
    assert replace(context, is_recorded=True).credential("TOKEN") == ""
    assert "t" not in repr(context).replace("KindContext", "").replace("tenant", "")[-20:-15]
