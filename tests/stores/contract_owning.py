"""The contract of every store about objects that an owner generates: create, and replace over a revision."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import ResourceChangeType, Store
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid, WriteConflict
from tests.stores.samples import REF, SECRET_REF, expected_document, instance, metadata_of, secret, take

OWNER = {"apiVersion": "v1", "kind": "Parent", "name": "p", "uid": "u", "controller": True, "blockOwnerDeletion": True}
READY: JsonObject = {"conditions": [{"type": "Ready", "status": "True"}]}


def edited(resource: Resource, spec: Any = None, **metadata: Any) -> JsonObject:
    """The document of `resource` with another spec, and with this in its metadata; None removes a member."""
    expected_document = {
        name: value for name, value in {**metadata_of(resource), **metadata}.items() if value is not None
    }
    return {**resource.document, "metadata": expected_document, **({} if spec is None else {"spec": spec})}


class Creating:
    """What `create` does."""

    def test_a_created_object_is_read_back(self, store: Store, loop: asyncio.Runner) -> None:
        made = loop.run(store.create(instance(labels={"a": "1"}, annotations={"b": "2"}, ownerReferences=[OWNER])))

        metadata = {"labels": {"a": "1"}, "annotations": {"b": "2"}, "ownerReferences": [OWNER]}
        assert made.document == expected_document(made, metadata)
        assert loop.run(store.get(REF)) == made

    def test_an_apply_without_owner_references_keeps_those_of_the_engine(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        loop.run(store.create(instance(ownerReferences=[OWNER])))

        edited_by_hand = loop.run(store.apply(instance(spec={"tier": "large"})))
        again = loop.run(store.apply(instance(spec={"tier": "larger"}, ownerReferences=[OWNER])))
        free = loop.run(store.replace(again, edited(again, ownerReferences=[])))
        after = loop.run(store.apply(instance(spec={"tier": "largest"})))

        owners = [metadata_of(one).get("ownerReferences") for one in (edited_by_hand, again, free, after)]
        assert owners == [[OWNER], [OWNER], None, None]

    def test_a_watch_shows_the_created_object(self, store: Store, loop: asyncio.Runner) -> None:
        since = loop.run(store.list()).revision
        made = loop.run(store.create(instance()))

        (event,) = loop.run(take(store.watch(since), 1))

        assert (event.change, event.resource) == (ResourceChangeType.ADDED, made)

    def test_metadata_that_only_a_store_writes_is_ignored(self, store: Store, loop: asyncio.Runner) -> None:
        document = instance(uid="mine", resourceVersion="99", generation=7, finalizers=["x.dev/f"])

        made = loop.run(store.create({**document, "status": READY}))

        assert (made.generation, made.finalizers, made.status) == (1, (), {})
        assert made.uid not in ("", "mine")

    def test_creating_an_existing_name_is_a_conflict_and_changes_nothing(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        there = loop.run(store.apply(instance()))

        with pytest.raises(WriteConflict) as caught:
            loop.run(store.create(instance(spec={"settings": {"tier": "large"}})))

        assert str(caught.value) == (
            f"SQLInstance default/db is there already (uid {there.uid}): read it and plan again"
        )
        assert loop.run(store.get(REF)) == there

    def test_a_name_is_taken_until_its_object_is_removed(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.set_finalizers(loop.run(store.create(instance())), ("x.dev/f",)))
        loop.run(store.delete(REF))

        with pytest.raises(WriteConflict, match=r"^SQLInstance default/db is being deleted: wait until it is gone"):
            loop.run(store.create(instance()))

    def test_of_several_concurrent_creates_one_succeeds(self, store: Store, loop: asyncio.Runner) -> None:
        async def scenario() -> list[Resource | BaseException]:
            documents = [instance(spec={"number": number}) for number in range(8)]
            return await asyncio.gather(*map(store.create, documents), return_exceptions=True)

        answers = loop.run(scenario())

        (made,) = [one for one in answers if isinstance(one, Resource)]
        assert [type(one) for one in answers if one is not made] == [WriteConflict] * 7
        assert loop.run(store.get(REF)) == made

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"metadata": {"name": "My_DB"}}, "SQLInstance My_DB: metadata.name cannot be 'My_DB': write lower-case"),
            ({"metadata": {"name": "db", "labels": {"a": "b c"}}}, "metadata.labels.a cannot be 'b c': write letters"),
            ({"spec": {"a": float("nan")}}, "spec.a: nan is not a JSON number"),
        ],
    )
    def test_an_invalid_object_is_refused_with_the_member(
        self, store: Store, loop: asyncio.Runner, changes: Mapping[str, Any], message: str
    ) -> None:
        with pytest.raises(ManifestInvalid) as caught:
            loop.run(store.create({**instance(), **changes}))

        assert message in str(caught.value)
        assert loop.run(store.list()).resources == ()


class Replacing:
    """What `replace` does."""

    def test_a_replacement_changes_the_owner_s_part_and_keeps_the_rest(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        made = loop.run(store.create(instance(labels={"a": "1"}, annotations={"b": "1"})))
        held = loop.run(store.set_finalizers(made, ("x.dev/f",)))
        assert held is not None
        seen = loop.run(store.update_status(held, READY))
        document = edited(
            seen, {"tier": "large"}, labels={"c": "2"}, annotations={"d": "2"}, ownerReferences=[OWNER], finalizers=None
        )

        after = loop.run(store.replace(seen, {**document, "status": {"lost": True}}))

        assert after.spec == {"tier": "large"}
        assert (after.labels, after.annotations) == ({"c": "2"}, {"d": "2"})
        assert metadata_of(after)["ownerReferences"] == [OWNER]
        assert (after.status, after.finalizers, after.uid) == (READY, ("x.dev/f",), made.uid)
        assert (after.generation, after.revision != seen.revision) == (2, True)
        assert loop.run(store.get(REF)) == after

    def test_new_metadata_alone_keeps_the_generation(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(instance(labels={"a": "1"}, ownerReferences=[OWNER])))

        after = loop.run(store.replace(seen, edited(seen, labels=None, ownerReferences=[])))

        assert (after.labels, "ownerReferences" in metadata_of(after), after.generation) == ({}, False, 1)
        assert after.revision != seen.revision

    def test_an_unchanged_document_changes_nothing(self, store: Store, loop: asyncio.Runner) -> None:
        held = loop.run(store.set_finalizers(loop.run(store.create(instance(spec={"size": 10}))), ("x.dev/f",)))
        assert held is not None
        seen = loop.run(store.update_status(held, READY))

        assert loop.run(store.replace(seen, seen.document)) == seen
        assert loop.run(store.replace(seen, instance(spec={"size": 10.0}, labels={}))) == seen
        assert loop.run(store.get(REF)) == seen

    def test_true_instead_of_1_is_a_change(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(instance(spec={"size": 1})))

        assert loop.run(store.replace(seen, edited(seen, {"size": True}))).generation == 2

    def test_a_replacement_does_not_change_the_ownership_of_annotations(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        loop.run(store.annotate(loop.run(store.apply(instance(annotations={"mine": "1"}))), {"cookie": "c"}))
        seen = loop.run(store.get(REF))
        assert seen is not None

        after = loop.run(store.replace(seen, edited(seen, {"tier": "large"})))

        assert after.annotations == {"mine": "1", "cookie": "c"}
        assert loop.run(store.apply(instance())).annotations == {"cookie": "c"}

    def test_fields_stay_the_author_s_and_can_be_removed_by_an_apply(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.apply(instance(spec={"size": 1, "tier": "small"}, labels={"team": "a"})))
        loop.run(store.replace(seen, edited(seen, {"size": 1, "tier": "large"})))

        again = loop.run(store.apply(instance(spec={"tier": "small"})))

        assert (again.spec, again.labels) == ({"tier": "small"}, {})

    def test_an_object_that_is_being_deleted_can_be_replaced(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.set_finalizers(loop.run(store.create(instance())), ("x.dev/f",)))
        marked = loop.run(store.delete(REF))
        assert marked is not None

        after = loop.run(store.replace(marked, edited(marked, {"tier": "large"})))

        assert (after.spec, after.is_deleting) == ({"tier": "large"}, True)

    def test_a_replacement_changes_the_values_of_a_secret(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(secret(stringData={"a": "1", "b": "2"})))

        after = loop.run(store.replace(seen, secret(type="Opaque", stringData={"a": "3"})))

        assert seen.document["data"] == {"a": "MQ==", "b": "Mg=="}
        assert after.document["data"] == {"a": "Mw=="}
        assert "stringData" not in after.document
        assert loop.run(store.get(SECRET_REF)) == after

    def test_no_error_holds_a_value_of_a_secret(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(secret(stringData={"a": "1"})))

        with pytest.raises(ManifestInvalid, match=r"^Secret default/login: data.a is not base64") as caught:
            loop.run(store.replace(seen, {**seen.document, "data": {"a": "hunter2!"}}))

        assert "hunter2" not in str(caught.value)
        assert loop.run(store.get(SECRET_REF)) == seen

    def test_changing_a_returned_document_does_not_change_the_store(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(instance()))
        settings = {"tier": "large"}
        after = loop.run(store.replace(seen, edited(seen, {"settings": settings})))
        settings["tier"] = "changed in the document"
        spec = after.document["spec"]
        assert isinstance(spec, dict)
        spec["settings"]["tier"] = "changed in the answer"

        found = loop.run(store.get(REF))

        assert found is not None
        assert found.spec == {"settings": {"tier": "large"}}


class Conflicts:
    """A replacement over an older revision changes nothing."""

    def test_a_replacement_over_an_older_revision_is_a_conflict(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(instance()))
        now = loop.run(store.update_status(seen, READY))

        with pytest.raises(WriteConflict, match=r"^SQLInstance default/db has changed since it was read"):
            loop.run(store.replace(seen, edited(seen, {"tier": "large"})))

        assert loop.run(store.get(REF)) == now

    def test_a_replacement_of_a_deleted_object_is_a_conflict(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(instance()))
        loop.run(store.delete(REF))

        with pytest.raises(WriteConflict, match="SQLInstance default/db is gone"):
            loop.run(store.replace(seen, edited(seen, {"tier": "large"})))

        assert loop.run(store.get(REF)) is None

    def test_a_replacement_of_a_recreated_object_is_a_conflict(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(instance()))
        loop.run(store.delete(REF))
        successor = loop.run(store.create(instance()))

        with pytest.raises(WriteConflict, match="SQLInstance default/db was deleted and made anew"):
            loop.run(store.replace(seen, edited(seen, {"tier": "large"})))

        assert loop.run(store.get(REF)) == successor

    def test_of_several_concurrent_replacements_one_succeeds(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(instance()))

        async def scenario() -> list[Resource | BaseException]:
            writes = (store.replace(seen, edited(seen, {"number": number})) for number in range(8))
            return await asyncio.gather(*writes, return_exceptions=True)

        answers = loop.run(scenario())

        (after,) = [one for one in answers if isinstance(one, Resource)]
        assert [type(one) for one in answers if one is not after] == [WriteConflict] * 7
        assert loop.run(store.get(REF)) == after

    @pytest.mark.parametrize("changes", [{"kind": "Secret"}, {"metadata": {"name": "another"}}])
    def test_a_replacement_cannot_change_the_identity(
        self, store: Store, loop: asyncio.Runner, changes: Mapping[str, Any]
    ) -> None:
        seen = loop.run(store.create(instance()))

        with pytest.raises(ManifestInvalid, match=r"^SQLInstance default/db cannot become "):
            loop.run(store.replace(seen, {**instance(), **changes}))

        assert loop.run(store.get(REF)) == seen
