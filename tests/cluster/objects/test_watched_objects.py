"""Objects as a watch of their collection shows them: what has not changed is not read again."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest

from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import Absent, Location, Present, Unchanged
from setpoint.errors import RemoteConflict
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.spec import LiveObject
from tests.cluster.objects.object_harness import ObjectHarness, config_map
from tests.cluster.objects.sent_requests import SentRequests

TIMEOUT = 240.0


@dataclass
class Watching:
    """A watch of the ConfigMaps of a namespace, which runs while the harness does something else."""

    harness: ObjectHarness
    requests: SentRequests
    kind: KubernetesObjectKind
    location: Location
    changes: list[Location | None] = field(default_factory=list)
    task: "asyncio.Task[None] | None" = None

    async def start(self) -> None:
        """Returns when the watch has begun."""
        self.task = asyncio.create_task(self._follow())
        await self._until(1)

    async def stop(self) -> None:
        """Ends the watch."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def take(self, count: int) -> list[Location | None]:
        """The changes since the last call, once there are so many."""
        self.harness.run(self._until(count))
        taken, self.changes = self.changes, []
        return taken

    def observe(self, known: str | None = None) -> tuple[Absent | Present[LiveObject] | Unchanged, int]:
        """The object as the watch shows it, and how many requests that took."""
        self.requests.take()
        found = self.harness.run(self.kind.observe_watched(self.location, known))
        return found, len(self.requests.take())

    async def _follow(self) -> None:
        async with aclosing(self.kind.changes(self.kind.watch_topic(self.location))) as changes:
            async for location in changes:
                self.changes.append(location)

    async def _until(self, count: int) -> None:
        async with asyncio.timeout(TIMEOUT):
            while len(self.changes) < count:
                await asyncio.sleep(0.01)


@pytest.fixture
def watching(harness: ObjectHarness, requests: SentRequests) -> Iterator[Watching]:
    """A watch that has begun when the ConfigMap `map` existed."""
    harness.settle(config_map(a="1"))
    made = Watching(harness, requests, harness.kind, harness.location())
    harness.run(made.start())
    yield made
    harness.run(made.stop())


def test_an_object_that_has_not_changed_since_the_list_is_not_read(harness: ObjectHarness, watching: Watching) -> None:
    body = harness.status()["setpoint"]["body"]

    assert watching.observe(body) == (Unchanged(), 0)


def test_what_was_read_once_is_not_read_again(watching: Watching) -> None:
    first, requests = watching.observe()

    assert requests == 1
    assert watching.observe() == (first, 0)
    assert isinstance(first, Present)
    assert watching.observe(first.body) == (Unchanged(), 0)


def test_a_change_of_another_writer_is_read(harness: ObjectHarness, watching: Watching) -> None:
    watching.observe()
    watching.take(1)
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "2"}})

    assert watching.take(1) == [watching.location]
    found, requests = watching.observe()
    assert requests == 1
    assert isinstance(found, Present)
    assert found.whole["data"] == {"a": "2"}  # type: ignore[call-overload,index] # it is a ConfigMap


def test_an_own_write_is_no_change(harness: ObjectHarness, watching: Watching) -> None:
    watching.take(1)
    harness.declare(config_map(a="3"))
    harness.step_with(watching.kind)
    # The event of the write may come before its answer: then it cannot be known as an own one.
    watching.changes.clear()
    found, requests = watching.observe()
    # An event after it, so that its own would have come.
    harness.access.call("POST", harness.path("configmaps"), config_map("other"))

    assert watching.take(1) == [Location(watching.location.replace("/map ", "/other "))]
    assert requests == 0
    assert isinstance(found, Present)
    assert found.whole["data"] == {"a": "3"}  # type: ignore[call-overload,index] # it is a ConfigMap


def test_an_object_that_is_deleted_is_absent_without_a_request(harness: ObjectHarness, watching: Watching) -> None:
    watching.observe()
    watching.take(1)
    harness.access.call("DELETE", harness.path("configmaps", "map"))

    assert watching.take(1) == [watching.location]
    assert watching.observe() == (Absent(), 0)


def test_a_creation_never_writes_to_an_object_that_exists(harness: ObjectHarness, watching: Watching) -> None:
    """As if the watch had not shown it yet: the creation is refused, and then the object is read."""
    resource = harness.declare(config_map("map", c="3"), "two")
    intent = harness.run(resolve_intent(resource, harness.engine))
    before = harness.live("configmaps", "map")
    watching.observe()

    with pytest.raises(RemoteConflict):
        harness.run(watching.kind.create(intent, {}))

    assert harness.live("configmaps", "map") == before
    assert watching.observe()[1] == 1
    assert watching.observe()[1] == 0


def test_a_new_object_is_kept_as_it_was_answered(harness: ObjectHarness, watching: Watching) -> None:
    resource = harness.declare(config_map("new", c="3"), "two")
    intent = harness.run(resolve_intent(resource, harness.engine))
    watching.location = harness.location("two")
    absent = watching.observe()
    harness.run(watching.kind.create(intent, {}))
    found, requests = watching.observe()

    assert absent == (Absent(), 0)
    assert requests == 0
    assert isinstance(found, Present)
    assert found == harness.run(watching.kind.observe(watching.location))


def test_of_a_secret_nothing_but_its_version_is_kept(harness: ObjectHarness, requests: SentRequests) -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"a": "1"}}
    harness.settle(manifest)
    watching = Watching(harness, requests, harness.kind, harness.location())
    harness.run(watching.start())
    found, _ = watching.observe()

    assert isinstance(found, Present)
    assert watching.observe(found.body) == (Unchanged(), 0)
    assert watching.observe() == (found, 1)
    harness.run(watching.stop())
