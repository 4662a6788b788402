"""The contract of the embedded stores: times by our clock, and one sequence of revisions."""

import asyncio
from dataclasses import replace

import pytest

from setpoint.engine.ports import Store
from setpoint.engine.resource import ResourceRef, Revision
from setpoint.errors import RevisionExpired
from tests.engine.clock import FakeClock
from tests.stores.contract_secrets_events_leases import EVENT
from tests.stores.objects import CONFIG_MAP, VOLUME, ref_of
from tests.stores.samples import GROUP, REF, instance, metadata_of, secret, take


class TestStamps:
    def test_uid_and_times_are_set_by_the_store(self, store: Store, loop: asyncio.Runner, clock: FakeClock) -> None:
        held = loop.run(store.set_finalizers(loop.run(store.apply(instance())), ("x.dev/f",)))
        clock.seconds = 5

        marked = loop.run(store.delete(REF))

        assert held is not None
        assert (held.uid, metadata_of(held)["creationTimestamp"]) == ("uid-1", "2026-01-01T00:00:00Z")
        assert marked is not None
        assert (metadata_of(marked)["deletionTimestamp"], marked.generation) == ("2026-01-01T00:00:05Z", 1)

    def test_every_change_of_the_author_s_part_raises_the_generation(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.apply(instance()))
        loop.run(store.apply(secret(stringData={"a": "1"})))

        assert loop.run(store.apply({**instance(), "apiVersion": f"{GROUP}/v1"})).generation == 2
        assert loop.run(store.apply(secret(stringData={"a": "2"}))).generation == 2


class TestSupersededSecrets:
    def test_a_watch_shows_only_the_present_values_of_a_secret(self, store: Store, loop: asyncio.Runner) -> None:
        for value in ("1", "2"):
            loop.run(store.apply(secret(stringData={"a": value})))
        loop.run(store.update_status(loop.run(store.apply(secret(stringData={"a": "3"}))), {"seen": True}))

        events = loop.run(take(store.watch(Revision("0")), 4))

        shown = [event.resource.document.get("data") for event in events]
        assert shown == [None, None, {"a": "Mw=="}, {"a": "Mw=="}]

    def test_a_deleted_secret_is_shown_without_its_values(self, store: Store, loop: asyncio.Runner) -> None:
        gone = loop.run(store.apply(secret(stringData={"a": "1"})))
        loop.run(store.delete(gone.ref))
        loop.run(store.apply(secret(stringData={"a": "1"})))

        events = loop.run(take(store.watch(Revision("0")), 3))

        shown = [(event.change.value, event.resource.document.get("data")) for event in events]
        assert shown == [("added", None), ("deleted", None), ("added", {"a": "MQ=="})]


class TestOwning:
    def test_nothing_is_deleted_with_its_owner(self, store: Store) -> None:
        assert store.collects is False

    def test_an_object_without_a_namespace_is_in_the_default_one(self, store: Store, loop: asyncio.Runner) -> None:
        made = loop.run(store.create(VOLUME))

        assert made.ref == ResourceRef("", "PersistentVolume", "default", "disk")
        assert loop.run(store.get(ref_of(VOLUME))) == loop.run(store.get(made.ref)) == made
        assert loop.run(store.delete(ref_of(VOLUME))) is None
        assert loop.run(store.get(made.ref)) is None

    def test_annotations_of_the_engine_survive_a_replacement_that_does_not_name_them(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        seen = loop.run(store.annotate(loop.run(store.create(instance(annotations={"a": "1"}))), {"cookie": "c"}))

        after = loop.run(store.replace(seen, instance(annotations={"b": "2"})))

        assert after.annotations == {"b": "2", "cookie": "c"}

    def test_new_contents_of_any_kind_raise_the_generation(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(CONFIG_MAP))

        assert loop.run(store.replace(seen, {**CONFIG_MAP, "data": {"a": "2"}})).generation == 2


class TestRevisions:
    def test_a_list_is_at_the_revision_of_the_last_change(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance()))
        loop.run(store.apply(instance()))
        loop.run(store.delete(REF._replace(name="not-there")))

        assert loop.run(store.list()).revision == created.revision

    def test_an_event_has_the_revision_of_its_resource(self, store: Store, loop: asyncio.Runner) -> None:
        since = loop.run(store.list()).revision
        created = loop.run(store.apply(instance()))
        updated = loop.run(store.update_status(created, {"a": 1}))

        events = loop.run(take(store.watch(since), 2))

        assert [event.revision for event in events] == [created.revision, updated.revision]

    def test_concurrent_writes_are_shown_in_the_order_of_the_calls(self, store: Store, loop: asyncio.Runner) -> None:
        names = [f"db-{number}" for number in range(60)]

        async def scenario() -> list[str]:
            since = (await store.list()).revision
            await asyncio.gather(*(store.apply(instance(name)) for name in names))
            return [event.resource.ref.name for event in await take(store.watch(since), len(names))]

        assert loop.run(scenario()) == names

    def test_a_revision_of_the_future_has_expired(self, store: Store, loop: asyncio.Runner) -> None:
        with pytest.raises(RevisionExpired, match="list again, then watch from there"):
            loop.run(take(store.watch(Revision("999999")), 1))


class TestEventLimits:
    def test_the_oldest_events_of_one_resource_are_dropped(self, store: Store, loop: asyncio.Runner) -> None:
        for number in range(5):
            loop.run(store.record_event(replace(EVENT, reason=str(number))))

        assert [event.reason for event in loop.run(store.events())] == ["2", "3", "4"]

    def test_the_oldest_events_of_all_are_dropped(self, store: Store, loop: asyncio.Runner) -> None:
        for number in range(10):
            loop.run(store.record_event(replace(EVENT, uid=f"uid-{number}")))

        assert [event.uid for event in loop.run(store.events())] == [f"uid-{number}" for number in range(2, 10)]
