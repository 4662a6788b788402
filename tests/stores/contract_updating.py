"""The contract of every store about updates of several parts of a resource, and about writes of several children."""

import asyncio

import pytest

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import ChildWrite, ResourceUpdate, Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ChildRefused, ManifestInvalid, StoreError, WriteConflict
from tests.stores.contract_owning import OWNER, edited
from tests.stores.samples import FINALIZER, REF, event_about, instance, metadata_of

READY: JsonObject = {"conditions": [{"type": "Ready", "status": "True"}]}


def child_ref(name: str) -> ResourceRef:
    return REF._replace(name=name)


class Updating:
    """What `update` does."""

    def test_changes_every_part_that_is_given_and_records_the_events(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance(labels={"a": "1"}, annotations={"mine": "1"})))
        event = event_about(created)

        update = ResourceUpdate(status=READY, finalizers=FINALIZER, annotations={"cookie": "c"}, events=[event])
        after = loop.run(store.update(created, update))

        assert after is not None
        metadata = {
            **metadata_of(created),
            "resourceVersion": after.revision,
            "finalizers": ["x.dev/f"],
            "annotations": {"mine": "1", "cookie": "c"},
        }
        assert after.document == {**created.document, "metadata": metadata, "status": READY}
        assert after.revision != created.revision
        assert loop.run(store.get(REF)) == after
        assert loop.run(store.events(REF)) == (event,)

    def test_a_part_that_is_not_given_stays(self, store: Store, loop: asyncio.Runner) -> None:
        update = ResourceUpdate(status=READY, finalizers=FINALIZER, annotations={"cookie": "c"})
        before = loop.run(store.update(loop.run(store.apply(instance())), update))
        assert before is not None

        after = loop.run(store.update(before, ResourceUpdate(status={"size": 1})))

        assert after is not None
        assert (after.status, after.finalizers, after.annotations) == ({"size": 1}, FINALIZER, {"cookie": "c"})

    def test_unchanged_parts_change_nothing(self, store: Store, loop: asyncio.Runner) -> None:
        update = ResourceUpdate(status=READY, finalizers=FINALIZER, annotations={"cookie": "c"})
        before = loop.run(store.update(loop.run(store.apply(instance())), update))
        assert before is not None
        same = ResourceUpdate(status=READY, finalizers=FINALIZER, annotations={"cookie": "c", "absent": None})

        assert loop.run(store.update(before, same)) == before
        assert loop.run(store.update(before, ResourceUpdate())) == before
        assert loop.run(store.get(REF)) == before

    def test_events_alone_are_recorded_and_leave_the_revision(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance()))
        events = (event_about(created, "first"), event_about(created, "second"))

        after = loop.run(store.update(created, ResourceUpdate(events=events)))

        assert after == created
        assert loop.run(store.events(REF)) == events

    def test_annotations_are_the_engine_s_until_the_author_changes_them(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        created = loop.run(store.apply(instance(annotations={"mine": "1"})))
        loop.run(store.update(created, ResourceUpdate(status=READY, annotations={"cookie": "c", "mine": None})))

        assert loop.run(store.apply(instance())).annotations == {"cookie": "c"}
        assert loop.run(store.apply(instance(annotations={"cookie": "d"}))).annotations == {"cookie": "d"}
        assert loop.run(store.apply(instance())).annotations == {}

    def test_a_resource_is_removed_with_its_last_finalizer_and_its_events_stay(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        loop.run(store.set_finalizers(loop.run(store.apply(instance())), FINALIZER))
        marked = loop.run(store.delete(REF))
        assert marked is not None
        event = event_about(marked, "deleted")

        update = ResourceUpdate(status=READY, finalizers=(), annotations={"a": "1"}, events=[event])
        after = loop.run(store.update(marked, update))

        assert after is None
        assert loop.run(store.get(REF)) is None
        assert loop.run(store.events(REF)) == (event,)


class RefusedUpdates:
    """An update that is refused changes nothing, and records no event."""

    def test_an_update_of_an_older_revision_is_a_conflict(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.apply(instance()))
        now = loop.run(store.update_status(seen, READY))
        update = ResourceUpdate(status={"size": 1}, finalizers=FINALIZER, events=[event_about(seen)])

        with pytest.raises(WriteConflict, match=r"^SQLInstance default/db has changed since it was read"):
            loop.run(store.update(seen, update))

        assert loop.run(store.get(REF)) == now
        assert loop.run(store.events()) == ()

    def test_an_update_of_a_deleted_resource_is_a_conflict(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.apply(instance()))
        loop.run(store.delete(REF))
        update = ResourceUpdate(status=READY, annotations={"a": "1"}, events=[event_about(seen)])

        with pytest.raises(WriteConflict, match="SQLInstance default/db is gone"):
            loop.run(store.update(seen, update))

        assert loop.run(store.events()) == ()

    def test_no_finalizer_is_added_during_deletion(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.set_finalizers(loop.run(store.apply(instance())), FINALIZER))
        marked = loop.run(store.delete(REF))
        assert marked is not None
        update = ResourceUpdate(status=READY, finalizers=("x.dev/g",), events=[event_about(marked)])

        with pytest.raises(StoreError, match="finalizers can be taken off, not added"):
            loop.run(store.update(marked, update))

        assert loop.run(store.get(REF)) == marked
        assert loop.run(store.events()) == ()

    def test_of_several_concurrent_updates_one_succeeds(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.apply(instance()))

        async def scenario() -> list[Resource | BaseException | None]:
            updates = (
                store.update(seen, ResourceUpdate(status={"number": number}, annotations={"number": str(number)}))
                for number in range(8)
            )
            return await asyncio.gather(*updates, return_exceptions=True)

        answers = loop.run(scenario())

        (after,) = [one for one in answers if isinstance(one, Resource)]
        assert [type(one) for one in answers if one is not after] == [WriteConflict] * 7
        assert after.annotations == {"number": str(after.status["number"])}
        assert loop.run(store.get(REF)) == after


class WritingChildren:
    """What `write_children` does."""

    def test_children_are_created_and_replaced_in_order(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.update_status(loop.run(store.create(instance())), READY))

        made, after = loop.run(
            store.write_children(
                [
                    ChildWrite(instance("another", ownerReferences=[OWNER])),
                    ChildWrite(edited(seen, {"tier": "large"}, ownerReferences=[OWNER]), seen),
                ]
            )
        )

        assert (made.ref, made.generation, made.status) == (child_ref("another"), 1, {})
        assert (after.ref, after.generation, after.status) == (REF, 2, READY)
        assert [metadata_of(one)["ownerReferences"] for one in (made, after)] == [[OWNER], [OWNER]]
        assert [loop.run(store.get(one.ref)) for one in (made, after)] == [made, after]

    def test_unchanged_documents_change_nothing(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(instance()))

        assert loop.run(store.write_children([ChildWrite(seen.document, seen)])) == (seen,)
        assert loop.run(store.write_children([])) == ()
        assert loop.run(store.get(REF)) == seen

    def test_nothing_is_written_after_the_first_that_fails(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(instance()))
        now = loop.run(store.update_status(seen, READY))
        writes = [ChildWrite(edited(seen, {"tier": "large"}), seen), ChildWrite(instance("another"))]

        with pytest.raises(WriteConflict, match=r"^SQLInstance default/db has changed since it was read"):
            loop.run(store.write_children(writes))

        assert loop.run(store.list()).resources == (now,)

    def test_a_name_that_is_taken_is_a_conflict(self, store: Store, loop: asyncio.Runner) -> None:
        there = loop.run(store.create(instance()))

        with pytest.raises(WriteConflict, match=r"^SQLInstance default/db is there already"):
            loop.run(store.write_children([ChildWrite(instance()), ChildWrite(instance("another"))]))

        assert loop.run(store.list()).resources == (there,)

    def test_an_invalid_document_is_refused_with_its_position(self, store: Store, loop: asyncio.Runner) -> None:
        with pytest.raises(ChildRefused, match=r"^SQLInstance My_DB: metadata.name cannot be 'My_DB'") as refused:
            loop.run(store.write_children([ChildWrite(instance("My_DB")), ChildWrite(instance())]))

        assert refused.value.index == 0
        assert isinstance(refused.value.__cause__, ManifestInvalid)
        assert loop.run(store.list()).resources == ()

    def test_a_refusal_has_the_index_of_its_write(self, store: Store, loop: asyncio.Runner) -> None:
        with pytest.raises(ChildRefused) as refused:
            loop.run(store.write_children([ChildWrite(instance()), ChildWrite(instance("My_DB"))]))

        assert refused.value.index == 1

    def test_get_many_returns_resources_in_the_order_of_the_refs_and_none_for_absent_ones(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        first, second = (loop.run(store.apply(instance(name))) for name in ("a", "b"))
        absent = child_ref("absent")

        found = loop.run(store.get_many([second.ref, absent, first.ref]))

        assert found == (second, None, first)
        assert loop.run(store.get_many([])) == ()
