"""A process that is killed before or after any request: the next one continues, and there is one object, or none.

One that shares its store with others is killed before and after any write to the store, too.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome
from setpoint.stores.memory import MemoryStore
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map

T = TypeVar("T")

# More requests than any step sends.
MOST_REQUESTS = 40


class Killed(BaseException):
    """Stands for kill -9."""


@dataclass
class KillPoint:
    """Before or after which request the process is killed."""

    requests_left: int = MOST_REQUESTS * 1000
    after: bool = False
    has_happened: bool = field(default=False)

    async def around(self, work: Awaitable[T]) -> T:
        """Does `work`, unless the process is killed before it; the result, unless it is killed after it."""
        self.requests_left -= 1
        if self.requests_left == 0 and not self.after:
            self.has_happened = True
            if isinstance(work, Coroutine):
                work.close()
            raise Killed
        result = await work
        if self.requests_left == 0:
            self.has_happened = True
            raise Killed
        return result


class KillableHttp(HttpClient):
    """An HTTP client that raises `Killed` at the kill point."""

    kill_point = KillPoint()

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await self.kill_point.around(super().send(request))


class KillableStore(MemoryStore):
    """A store that raises `Killed` at the kill point, which counts its writes as well."""

    async def update(self, resource: Resource, update: ResourceUpdate) -> Resource | None:
        """See Store."""
        return await KillableHttp.kill_point.around(super().update(resource, update))


@pytest.fixture(params=["a command", "a controller", "a replica"])
def harness(request: pytest.FixtureRequest, api_server: Access, namespace: str) -> Iterator[ObjectHarness]:
    """A harness whose client can be killed at any request; that of a replica at any write to the store, too."""
    is_replica = request.param == "a replica"
    is_controller = request.param != "a command"
    made = ObjectHarness(api_server, namespace, {}, is_controller=is_controller, is_replica=is_replica)
    if is_replica:
        made.store = KillableStore(made.clock, lambda: str(uuid4()))
    client = KubernetesClient(connection_from_files([api_server.kubeconfig]), http=KillableHttp())
    made.clusters.own = client
    yield made
    made.run(client.close())
    made.close()


def step_killed_once(harness: ObjectHarness, name: str, kill_point: KillPoint) -> StepOutcome:
    """The outcome of the steps after the process was killed once."""
    KillableHttp.kill_point = kill_point
    try:
        harness.step_until_done(name)
    except Killed:
        pass
    finally:
        KillableHttp.kill_point = KillPoint()
    return harness.step_until_done(name)


def kill_at_every_request(
    begin: Callable[[str], object], harness: ObjectHarness, check: Callable[[str, StepOutcome], None]
) -> int:
    """Repeats the same work, killed at another request each time; the number of kill points."""
    points = 0
    for after in (False, True):
        for count in range(1, MOST_REQUESTS):
            name = f"{'after' if after else 'before'}-{count}"
            begin(name)
            kill_point = KillPoint(count, after)
            check(name, step_killed_once(harness, name, kill_point))
            if not kill_point.has_happened:
                break
            points += 1
        else:
            raise AssertionError("the steps send more requests than expected")
    return points


def data_of(harness: ObjectHarness, name: str) -> Any:
    live = harness.live("configmaps", name)
    return None if live is None else live["data"]


def test_an_object_is_created_once(harness: ObjectHarness) -> None:
    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(harness, name) == {"a": "1"}
        assert harness.ready(name) == ("True", "UpToDate")
        assert harness.plan(name).is_empty

    points = kill_at_every_request(lambda name: harness.declare(config_map(name, a="1"), name), harness, check)
    # A controller sends no dry run before. A replica writes the announced claim before, and the result after it.
    assert points == (8 if harness.is_replica else 4 if harness.is_controller else 6)


def test_an_object_that_a_killed_process_created_is_deleted_with_its_resource(harness: ObjectHarness) -> None:
    created = []

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Gone)
        assert data_of(harness, name) is None
        assert harness.run(harness.store.get(harness.ref(name))) is None

    def step_killed(name: str, kill_point: KillPoint) -> None:
        KillableHttp.kill_point = kill_point
        with suppress(Killed):
            harness.step_until_done(name)
        KillableHttp.kill_point = KillPoint()
        created.append(data_of(harness, name) is not None)

    for after in (False, True):
        for count in range(1, MOST_REQUESTS):
            name, kill_point = f"{'after' if after else 'before'}-{count}", KillPoint(count, after)
            harness.declare(config_map(name, a="1"), name)
            step_killed(name, kill_point)
            harness.run(harness.store.delete(harness.ref(name)))
            check(name, harness.step_until_done(name))
            if not kill_point.has_happened:
                break
    # The object was there at some kill points, and at others not yet.
    assert {True, False} == set(created)


def test_a_change_of_the_spec_is_written(harness: ObjectHarness) -> None:
    def begin(name: str) -> None:
        harness.settle(config_map(name, a="1"), name)
        harness.declare(config_map(name, a="2"), name)

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(harness, name) == {"a": "2"}
        assert harness.plan(name).is_empty

    points = kill_at_every_request(begin, harness, check)
    # A replica records the result in its store, too.
    assert points == (6 if harness.is_replica else 4 if harness.is_controller else 6)


def test_drift_is_reverted(harness: ObjectHarness) -> None:
    def begin(name: str) -> None:
        harness.settle(config_map(name, a="1"), name)
        harness.edit(harness.path("configmaps", name), {"data": {"a": "2"}})

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(harness, name) == {"a": "1"}

    # A GET, a dry run and the apply; the store of a replica has two writes, before the apply and after it.
    assert kill_at_every_request(begin, harness, check) == (10 if harness.is_replica else 6)


def test_an_object_is_replaced(harness: ObjectHarness) -> None:
    def fixed(name: str, value: str) -> Tree:
        return {**config_map(name, a=value), "immutable": True}

    def begin(name: str) -> None:
        harness.settle(fixed(name, "1"), name)
        harness.declare(fixed(name, "2"), name, replace=True)

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(harness, name) == {"a": "2"}

    assert kill_at_every_request(begin, harness, check) >= 8


def test_an_object_that_moves_leaves_none_behind(harness: ObjectHarness) -> None:
    def begin(name: str) -> None:
        harness.settle(config_map(name, a="1"), name)
        harness.declare(config_map(f"{name}-moved", a="1"), name, replace=True)

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(harness, name) is None
        assert data_of(harness, f"{name}-moved") == {"a": "1"}

    assert kill_at_every_request(begin, harness, check) >= 8


def test_an_object_is_deleted(harness: ObjectHarness) -> None:
    def begin(name: str) -> None:
        harness.settle(config_map(name, a="1"), name)
        harness.run(harness.store.delete(harness.ref(name)))

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Gone)
        assert data_of(harness, name) is None
        assert harness.run(harness.store.get(harness.ref(name))) is None

    assert kill_at_every_request(begin, harness, check) >= 4
