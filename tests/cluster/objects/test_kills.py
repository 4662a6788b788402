"""A process may end before and after any request: the next one goes on, and there is one object, or none."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.engine.context import Gone, Settled, StepOutcome
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import Site, Tree, config_map

# More requests than any step sends.
MOST = 40


class Killed(BaseException):
    """The end of the process."""


@dataclass
class Fate:
    """When it ends: before or after so many requests."""

    left: int = MOST * 1000
    after: bool = False
    hit: bool = field(default=False)


class MortalHttp(HttpClient):
    """Requests of a process that may end."""

    resolution = Fate()

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.resolution.left -= 1
        if self.resolution.left == 0 and not self.resolution.after:
            self.resolution.hit = True
            raise Killed
        answer = await super().send(request)
        if self.resolution.left == 0:
            self.resolution.hit = True
            raise Killed
        return answer


@pytest.fixture
def site(api_server: Access, namespace: str) -> Iterator[Site]:
    """A process whose store is the cluster's own, over connections that may end."""
    made = Site(api_server, namespace, {})
    client = KubernetesClient(connection_from_files([api_server.kubeconfig]), http=MortalHttp())
    made.clusters.own = client
    yield made
    made.run(client.close())
    made.close()


def goes_on(site: Site, name: str, resolution: Fate) -> StepOutcome:
    """How it ends when the process is killed once on the way."""
    MortalHttp.resolution = resolution
    try:
        site.go_on(name)
    except Killed:
        pass
    finally:
        MortalHttp.resolution = Fate()
    return site.go_on(name)


def kills(begin: Callable[[str], object], site: Site, check: Callable[[str, StepOutcome], None]) -> int:
    """Begins the same again and again, with an end after each request; how many ways to end there were."""
    ways = 0
    for after in (False, True):
        for count in range(1, MOST):
            name = f"{'after' if after else 'before'}-{count}"
            begin(name)
            resolution = Fate(count, after)
            check(name, goes_on(site, name, resolution))
            if not resolution.hit:
                break
            ways += 1
        else:
            raise AssertionError("a step has no end")
    return ways


def data_of(site: Site, name: str) -> Any:
    live = site.live("configmaps", name)
    return None if live is None else live["data"]


def test_an_object_is_made_once(site: Site) -> None:
    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(site, name) == {"a": "1"}
        assert site.ready(name) == ("True", "UpToDate")
        assert site.plan(name).is_empty

    assert kills(lambda name: site.declare(config_map(name, a="1"), name), site, check) >= 8


def test_a_change_is_made(site: Site) -> None:
    def begin(name: str) -> None:
        site.settle(config_map(name, a="1", b="1"), name)
        site.declare(config_map(name, a="2"), name)

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(site, name) == {"a": "2"}
        assert site.plan(name).is_empty

    assert kills(begin, site, check) >= 8


def test_what_a_person_changed_is_put_back(site: Site) -> None:
    def begin(name: str) -> None:
        site.settle(config_map(name, a="1"), name)
        site.edit(site.path("configmaps", name), {"data": {"a": "2"}})

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(site, name) == {"a": "1"}

    assert kills(begin, site, check) >= 8


def test_an_object_is_replaced(site: Site) -> None:
    def fixed(name: str, value: str) -> Tree:
        return {**config_map(name, a=value), "immutable": True}

    def begin(name: str) -> None:
        site.settle(fixed(name, "1"), name)
        site.declare(fixed(name, "2"), name, replace=True)

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(site, name) == {"a": "2"}

    assert kills(begin, site, check) >= 8


def test_an_object_that_moves_leaves_none_behind(site: Site) -> None:
    def begin(name: str) -> None:
        site.settle(config_map(name, a="1"), name)
        site.declare(config_map(f"{name}-moved", a="1"), name, replace=True)

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Settled)
        assert data_of(site, name) is None
        assert data_of(site, f"{name}-moved") == {"a": "1"}

    assert kills(begin, site, check) >= 8


def test_an_object_is_deleted(site: Site) -> None:
    def begin(name: str) -> None:
        site.settle(config_map(name, a="1"), name)
        site.run(site.store.delete(site.ref(name)))

    def check(name: str, outcome: StepOutcome) -> None:
        assert isinstance(outcome, Gone)
        assert data_of(site, name) is None
        assert site.run(site.store.get(site.ref(name))) is None

    assert kills(begin, site, check) >= 4
