"""FaultyClient: any client behind it is counted, and fails as it is told."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.http import HttpRequest
from setpoint.errors import RemoteConflict, RemoteRefused, RemoteUnavailable
from setpoint.testing import CallFault, CallFaults, FaultyClient, http_failure, http_verb
from setpoint.testing.faults import EVERY_VERB, CountedKind

VERBS = {"read": "get", "make": "create", "set": "update", "drop": "delete", "ping": None}
METHODS = {"get": "read", "create": "make", "update": "set", "delete": "drop"}


class Client:
    """A client that keeps what it was asked for."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.title = "a client"

    async def read(self, name: str) -> str:
        return self._do("read", name)

    async def make(self, name: str) -> str:
        return self._do("make", name)

    async def set(self, name: str) -> str:
        return self._do("set", name)

    async def drop(self, name: str) -> str:
        return self._do("drop", name)

    async def ping(self) -> str:
        return self._do("ping", "")

    async def forgotten(self) -> None:
        """A method that its author did not think of."""

    def _do(self, method: str, name: str) -> str:
        self.done.append(method)
        return f"{method} {name}"


@pytest.mark.laws
@given(st.lists(st.tuples(st.sampled_from(EVERY_VERB), st.none() | st.sampled_from(CallFault)), max_size=20))
def test_every_call_is_counted_and_is_carried_out_unless_its_fault_says_otherwise(
    calls: list[tuple[str, CallFault | None]],
) -> None:
    inner = Client()
    client = FaultyClient(inner, VERBS)

    async def call(verb: str, fault: CallFault | None) -> bool:
        if fault is not None:
            client.faults.fail(fault, [verb], times=1)
        try:
            return bool(await getattr(client, METHODS[verb])("x") == f"{METHODS[verb]} x")
        except (RemoteUnavailable, RemoteRefused, RemoteConflict):
            return False

    async def play() -> list[bool]:
        return [await call(verb, fault) for verb, fault in calls]

    answered = asyncio.run(play())

    assert client.faults.calls == [verb for verb, _ in calls]
    assert answered == [fault is None for _, fault in calls]
    assert inner.done == [METHODS[verb] for verb, fault in calls if fault in (None, CallFault.LOST)]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (CallFault.UNAVAILABLE, RemoteUnavailable),
        (CallFault.QUOTA, RemoteUnavailable),
        (CallFault.CUT, RemoteUnavailable),
        (CallFault.LOST, RemoteUnavailable),
        (CallFault.REFUSED, RemoteRefused),
        (CallFault.CONFLICT, RemoteConflict),
    ],
)
def test_a_fault_is_one_of_our_errors_unless_the_client_has_its_own(fault: CallFault, error: type[Exception]) -> None:
    faults = CallFaults()
    ours = FaultyClient(Client(), VERBS, faults)
    theirs = FaultyClient(Client(), VERBS, faults, failure=lambda fault, call: KeyError(f"{call}: {fault.name}"))
    faults.fail(fault, times=2)

    with pytest.raises(error, match=r"get \(read\): "):
        asyncio.run(ours.read("x"))
    with pytest.raises(KeyError, match=rf"get \(read\): {fault.name}"):
        asyncio.run(theirs.read("x"))


def test_an_http_client_gets_a_response_with_the_status_of_the_fault() -> None:
    class Http:
        async def send(self, request: HttpRequest) -> None:
            raise AssertionError(request)

    client = FaultyClient(Http(), {"send": http_verb}, failure=http_failure)
    client.faults.fail(CallFault.QUOTA, ["update"])
    client.faults.fail(CallFault.REFUSED, ["create"])
    client.faults.fail(CallFault.CUT, ["get"])

    async def status(method: str) -> Any:
        return (await client.send(HttpRequest(method, "http://service.example/x"))).status

    assert [asyncio.run(status(method)) for method in ("PATCH", "PUT", "POST")] == [429, 429, 403]
    with pytest.raises(RemoteUnavailable):
        asyncio.run(status("GET"))
    assert client.faults.calls == ["update", "update", "create", "get"]


def test_a_method_that_reaches_no_service_is_not_counted_and_never_fails() -> None:
    client = FaultyClient(Client(), VERBS)
    client.faults.fail(CallFault.UNAVAILABLE)

    assert asyncio.run(client.ping()) == "ping "
    assert client.faults.calls == []
    assert client.title == "a client"


def test_a_method_that_is_not_listed_is_named_with_what_to_do() -> None:
    client = FaultyClient(Client(), VERBS)

    with pytest.raises(AssertionError, match=r"Client\.forgotten is called.*add 'forgotten' to its `verbs`"):
        client.forgotten  # noqa: B018 # to look at it is enough


def test_what_a_method_does_can_depend_on_its_arguments() -> None:
    client = FaultyClient(Client(), {"set": lambda name: "create" if name == "new" else "update"})

    async def play() -> None:
        await client.set("new")
        await client.set("old")

    asyncio.run(play())

    assert client.faults.calls == ["create", "update"]


def _steps(work: Callable[[FaultyClient], Awaitable[None]]) -> type:
    class Kind:
        """A kind whose verbs take several calls."""

        def __init__(self, client: FaultyClient) -> None:
            self.client = client

        async def observe(self) -> None:
            await work(self.client)

        async def update(self) -> None:
            await work(self.client)

    return Kind


async def _several_writes(client: FaultyClient) -> None:
    await client.read("x")
    await client.set("x")
    await client.drop("y")
    await client.make("y")


def test_all_writes_of_one_verb_count_as_one_call_of_that_verb() -> None:
    client = FaultyClient(Client(), VERBS)
    kind = CountedKind(_steps(_several_writes)(client))

    asyncio.run(kind.update())

    assert client.faults.calls == ["get", "update"]


def test_writes_while_a_kind_observes_count_as_what_they_are() -> None:
    client = FaultyClient(Client(), VERBS)
    kind = CountedKind(_steps(_several_writes)(client))

    asyncio.run(kind.observe())

    assert client.faults.calls == ["get", "update", "delete", "create"]


def test_a_service_has_its_own_way_after_each_creation_and_update() -> None:
    client = FaultyClient(Client(), VERBS)
    overridden: list[str] = []

    async def play() -> None:
        client.faults.override_writes(lambda: overridden.append(client.faults.calls[-1]))
        for method in ("make", "read", "set", "drop"):
            await getattr(client, method)("x")
        client.faults.clear()
        await client.set("x")

    asyncio.run(play())

    assert overridden == ["create", "update"]


def test_a_fault_of_a_verb_stops_whichever_write_it_takes() -> None:
    inner = Client()
    client = FaultyClient(inner, VERBS)
    kind = CountedKind(_steps(_several_writes)(client))
    client.faults.fail(CallFault.REFUSED, ["update"], times=1)

    with pytest.raises(RemoteRefused):
        asyncio.run(kind.update())
    assert inner.done == ["read"]
