"""The contract of every store about Secrets, event records and leases."""

import asyncio
from dataclasses import replace

import pytest

from setpoint.core.values.json_types import Json
from setpoint.engine.ports import EventRecord, Lease, Store
from setpoint.errors import ManifestInvalid
from tests.engine.clock import FakeClock
from tests.stores.samples import REF, SECRET_REF, instance, metadata_of, secret, take

EVENT = EventRecord(REF, "uid-1", "Warning", "UpdateFailed", "the disk cannot shrink", "2026-01-01T00:00:00Z")


class Secrets:
    """How the data of a Secret is stored and returned."""

    def test_string_data_is_merged_into_data_and_wins(self, store: Store, loop: asyncio.Runner) -> None:
        manifest = secret(type="Opaque", data={"a": "b2xk", "b": "a2VwdA=="}, stringData={"a": "new"})

        created = loop.run(store.apply(manifest))

        assert created.document["data"] == {"a": "bmV3", "b": "a2VwdA=="}
        assert "stringData" not in created.document
        assert loop.run(store.get(SECRET_REF)) == created
        assert loop.run(store.list()).resources == (created,)

    def test_base64_in_several_lines_is_the_same_value(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(secret(data={"a": "b2\nxk\r\n"})))

        assert loop.run(store.apply(secret(data={"a": "b2xk"}))) == created

    def test_new_data_is_a_new_revision_and_other_writes_keep_it(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(secret(stringData={"a": "1"})))
        held = loop.run(store.set_finalizers(created, ("x.dev/f",)))

        changed = loop.run(store.apply(secret(stringData={"a": "2"})))

        assert held is not None
        assert held.document["data"] == {"a": "MQ=="}
        assert (changed.document["data"], changed.uid) == ({"a": "Mg=="}, created.uid)
        assert changed.revision != held.revision

    def test_a_watch_shows_the_values_of_the_newest_revision(self, store: Store, loop: asyncio.Runner) -> None:
        since, seen = loop.run(store.list()).revision, list[Json]()
        for value in ("1", "2"):
            loop.run(store.apply(secret(stringData={"a": value})))
            (event,) = loop.run(take(store.watch(since), 1))
            since = event.revision
            seen.append(event.resource.document["data"])

        assert seen == [{"a": "MQ=="}, {"a": "Mg=="}]

    @pytest.mark.parametrize(
        ("member", "entries", "message"),
        [
            ("data", {"tls.key": "hunter2!"}, 'data["tls.key"] is not base64: encode it, or write it under stringData'),
            ("data", {"a": ["hunter2"]}, "data.a is a list: write it as text, in quotes"),
            ("stringData", {"a": 20252026}, "stringData.a is a number: write it as text, in quotes"),
            ("stringData", {"a b": "hunter2"}, 'stringData["a b"] cannot have that key: write letters, digits'),
            ("data", "hunter2", "data is text: write an object of texts"),
        ],
    )
    def test_an_invalid_value_is_named_and_never_shown(
        self, store: Store, loop: asyncio.Runner, member: str, entries: Json, message: str
    ) -> None:
        with pytest.raises(ManifestInvalid) as caught:
            loop.run(store.apply(secret(**{member: entries})))

        assert str(caught.value).startswith(f"Secret login: {message}")
        assert "hunter2" not in str(caught.value)
        assert "20252026" not in str(caught.value)

    def test_the_last_applied_annotation_is_not_kept(self, store: Store, loop: asyncio.Runner) -> None:
        copy = {"kubectl.kubernetes.io/last-applied-configuration": '{"stringData":{"a":"hunter2"}}'}

        created = loop.run(
            store.apply({**secret(stringData={"a": "1"}), "metadata": {"name": "login", "annotations": copy}})
        )

        assert "annotations" not in metadata_of(created)


class Events:
    """What `record_event` and `events` do."""

    def test_an_equal_event_is_counted_and_becomes_the_newest(self, store: Store, loop: asyncio.Runner) -> None:
        other = replace(EVENT, message="another message")
        later = replace(EVENT, at="2026-01-01T00:01:00Z")
        for event in (EVENT, other, later):
            loop.run(store.record_event(event))

        assert loop.run(store.events()) == (other, replace(later, count=2))

    def test_events_are_found_by_their_resource(self, store: Store, loop: asyncio.Runner) -> None:
        # A second later: a cluster keeps no order of what is of one second.
        elsewhere = replace(EVENT, ref=SECRET_REF, uid="uid-2", at="2026-01-01T00:00:01Z")
        for event in (EVENT, elsewhere):
            loop.run(store.record_event(event))

        assert loop.run(store.events(SECRET_REF)) == (elsewhere,)
        assert loop.run(store.events()) == (EVENT, elsewhere)

    def test_events_outlive_their_resource(self, store: Store, loop: asyncio.Runner) -> None:
        event = replace(EVENT, uid=loop.run(store.apply(instance())).uid)
        loop.run(store.record_event(event))

        loop.run(store.delete(REF))

        assert loop.run(store.events(REF)) == (event,)


class Leases:
    """What `acquire`, `release` and `leases` do."""

    def test_one_holder_at_a_time(self, store: Store, loop: asyncio.Runner) -> None:
        lease = loop.run(store.acquire("shard-1", "me", 15))

        assert lease is not None
        assert (lease.name, lease.holder, lease.fence) == ("shard-1", "me", 1)
        assert loop.run(store.acquire("shard-1", "you", 15)) is None
        assert loop.run(store.acquire("shard-2", "you", 15)) is not None

    def test_the_holder_renews_under_the_same_fence(self, store: Store, loop: asyncio.Runner, clock: FakeClock) -> None:
        first = loop.run(store.acquire("shard-1", "me", 15))
        clock.seconds = 10

        second = loop.run(store.acquire("shard-1", "me", 15))

        assert first is not None
        assert second == replace(first, expires=first.expires + 10)

    def test_an_expired_lease_goes_to_the_next_holder_with_a_higher_fence(
        self, store: Store, loop: asyncio.Runner, clock: FakeClock
    ) -> None:
        mine = loop.run(store.acquire("shard-1", "me", 15))
        clock.seconds = 14
        assert loop.run(store.acquire("shard-1", "you", 15)) is None
        clock.seconds = 15

        yours = loop.run(store.acquire("shard-1", "you", 15))

        assert mine is not None
        assert yours == Lease("shard-1", "you", 2, mine.expires + 15)
        assert loop.run(store.acquire("shard-1", "me", 15)) is None

    def test_a_released_lease_is_free_and_its_fence_keeps_growing(self, store: Store, loop: asyncio.Runner) -> None:
        mine = loop.run(store.acquire("shard-1", "me", 15))
        assert mine is not None
        loop.run(store.release(mine))

        yours = loop.run(store.acquire("shard-1", "you", 15))

        assert yours is not None
        assert yours.fence == 2

    def test_a_lease_is_released_by_its_holder_only(self, store: Store, loop: asyncio.Runner, clock: FakeClock) -> None:
        mine = loop.run(store.acquire("shard-1", "me", 15))
        clock.seconds = 15
        loop.run(store.acquire("shard-1", "you", 15))

        assert mine is not None
        loop.run(store.release(mine))
        loop.run(store.release(Lease("shard-1", "you", 1, 0)))
        loop.run(store.release(Lease("never", "me", 1, 0)))

        assert loop.run(store.acquire("shard-1", "me", 15)) is None

    def test_leases_are_listed_by_prefix_including_released_and_expired_ones(
        self, store: Store, loop: asyncio.Runner, clock: FakeClock
    ) -> None:
        for name, holder in (("shard-2", "you"), ("shard-1", "me"), ("shard", "me"), ("member-1", "me")):
            loop.run(store.acquire(name, holder, 15))
        clock.seconds = 10
        given_back = loop.run(store.acquire("shard-3", "me", 15))
        assert given_back is not None
        loop.run(store.release(given_back))
        clock.seconds = 15

        listed = loop.run(store.leases("shard-"))

        assert [(one.name, one.holder, one.fence) for one in listed] == [
            ("shard-1", "me", 1),
            ("shard-2", "you", 1),
            ("shard-3", "", 1),
        ]
        assert [one.is_held(clock.now()) for one in listed] == [False, False, False]
        assert loop.run(store.leases("none-")) == ()
        assert len(loop.run(store.leases(""))) == 5

    @pytest.mark.parametrize("seconds", [0, 14, 15, 100])
    def test_a_listed_lease_is_held_exactly_while_no_other_holder_can_acquire_it(
        self, store: Store, loop: asyncio.Runner, clock: FakeClock, seconds: float
    ) -> None:
        loop.run(store.acquire("shard-1", "me", 15))
        loop.run(store.leases("shard-"))
        clock.seconds = seconds

        (listed,) = loop.run(store.leases("shard-"))

        assert listed.is_held(clock.now()) == (loop.run(store.acquire("shard-1", "you", 15)) is None)
