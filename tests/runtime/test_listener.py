"""Listening to a service that tells of changes: who is looked at, how soon, and how often at most. On virtual time."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.kind import Location
from setpoint.errors import RemoteRefused
from setpoint.runtime.remote_watch import COALESCE_SECONDS, REWATCH_SECONDS
from tests.engine.gadgets import Service, gadget_ref
from tests.runtime.rig import Rig, SlowKind, new_rig, running
from tests.runtime.virtual_time import run

# Much less than the time between two regular looks.
A_MOMENT = 2 * COALESCE_SECONDS


@dataclass(slots=True)
class AudibleKind(SlowKind):
    """`a-1` and `a-2` are heard of under the topic `a`."""

    # What is said to whoever listens, by topic; how often somebody began to.
    told: "dict[WatchTopic, asyncio.Queue[Location | None | Exception]]" = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def watch_topic(self, location: Location) -> WatchTopic:
        return WatchTopic(location.partition("-")[0])

    async def changes(self, topic: WatchTopic) -> AsyncGenerator[Location | None, None]:
        self.begun.append(topic)
        news = self.told.setdefault(topic, asyncio.Queue())
        try:
            while True:
                one = await news.get()
                if isinstance(one, Exception):
                    raise one
                yield one
        finally:
            self.ended.append(topic)

    def tell(self, topic: str, *news: Location | None | Exception) -> None:
        for one in news:
            self.told[WatchTopic(topic)].put_nowait(one)


def play(scenario: Callable[[Rig, AudibleKind], Awaitable[None]]) -> None:
    async def main() -> None:
        kind = AudibleKind(Service())
        async with running(new_rig(kind=kind)) as rig:
            await scenario(rig, kind)

    run(main())


async def _at_rest(rig: Rig, kind: AudibleKind, *names: str) -> None:
    for name in names:
        await rig.apply(name)
    await rig.settled(*names)
    await rig.clock.sleep(A_MOMENT)
    kind.looks.clear()


def test_what_changed_is_looked_at_and_put_back_at_once() -> None:
    async def scenario(rig: Rig, kind: AudibleKind) -> None:
        await _at_rest(rig, kind, "a-1", "a-2")
        rig.service.objects["a-1"]["size"] = 7
        kind.tell("a", Location("a-1"))
        await rig.clock.sleep(A_MOMENT)

        assert rig.service.objects["a-1"]["size"] == 1
        assert rig.looks_at("a-2") == []

    play(scenario)


def test_somebody_elses_object_is_nobodys_business() -> None:
    async def scenario(rig: Rig, kind: AudibleKind) -> None:
        await _at_rest(rig, kind, "a-1")
        kind.tell("a", Location("a-stranger"))
        await rig.clock.sleep(A_MOMENT)

        assert kind.looks == []

    play(scenario)


def test_what_changes_again_and_again_is_looked_at_now_and_then() -> None:
    async def scenario(rig: Rig, kind: AudibleKind) -> None:
        await _at_rest(rig, kind, "a-1")
        for _ in range(1_000):
            kind.tell("a", Location("a-1"))
            await rig.clock.sleep(0.01)
        await rig.clock.sleep(A_MOMENT)

        assert 10 / COALESCE_SECONDS / 2 <= len(rig.looks_at("a-1")) <= 10 / COALESCE_SECONDS + 2
        assert rig.writes("a-1") == ["create"]

    play(scenario)


def test_after_a_gap_everything_is_looked_at() -> None:
    async def scenario(rig: Rig, kind: AudibleKind) -> None:
        await _at_rest(rig, kind, "a-1", "a-2", "b-1")
        kind.tell("a", None)
        await rig.clock.sleep(A_MOMENT)

        assert (len(rig.looks_at("a-1")), len(rig.looks_at("a-2")), rig.looks_at("b-1")) == (1, 1, [])

    play(scenario)


def test_one_listens_to_each_topic_once_and_no_longer_than_there_is_anybody_to_hear_of() -> None:
    async def scenario(rig: Rig, kind: AudibleKind) -> None:
        await _at_rest(rig, kind, "a-1", "a-2", "b-1")
        assert sorted(kind.begun) == ["a", "b"]

        await rig.store.delete(gadget_ref("b-1"))
        await rig.clock.sleep(60)

        assert kind.ended == ["b"]

    play(scenario)


@pytest.mark.parametrize("trouble", [RemoteRefused("403: not allowed"), ValueError("a bug")])
def test_whoever_cannot_hear_tries_again_later_and_goes_on_looking(trouble: Exception) -> None:
    async def scenario(rig: Rig, kind: AudibleKind) -> None:
        await _at_rest(rig, kind, "a-1")
        kind.tell("a", trouble)
        await rig.clock.sleep(REWATCH_SECONDS / 2)
        begun = list(kind.begun)
        await rig.clock.sleep(REWATCH_SECONDS)

        assert (begun, kind.begun) == (["a"], ["a", "a"])
        assert rig.manager.failed_tasks == []

    play(scenario)
