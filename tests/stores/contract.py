"""The contract of every store about writes. Each class is a part of it; test_contract.py runs all on each store."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.ports import ResourceQuery, Store
from setpoint.engine.resource import ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.errors import ManifestInvalid, NotReady, StoreError, WriteConflict
from tests.engine.clock import FakeClock
from tests.stores.samples import GROUP, REF, expected_document, instance, metadata_of

READY: JsonObject = {"conditions": [{"type": "Ready", "status": "True"}]}


class Applying:
    """What `apply` does."""

    def test_apply_creates_an_absent_resource(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance(labels={"team": "a"})))

        assert created.document == expected_document(created, {"labels": {"team": "a"}})
        assert loop.run(store.get(REF)) == created

    def test_an_unchanged_manifest_changes_nothing(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance(spec={"size": 10})))

        again = loop.run(store.apply(instance(spec={"size": 10.0}, labels={}, annotations=None)))

        assert again == created

    def test_true_instead_of_1_is_a_new_spec(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.apply(instance(spec={"size": 1})))

        assert loop.run(store.apply(instance(spec={"size": True}))).generation == 2

    def test_a_new_spec_raises_the_generation_and_keeps_the_engine_s_part(
        self, store: Store, loop: asyncio.Runner, clock: FakeClock
    ) -> None:
        created = loop.run(store.apply(instance()))
        held = loop.run(store.set_finalizers(created, ("setpoint.dev/finalizer",)))
        assert held is not None
        loop.run(store.update_status(held, READY))
        clock.seconds = 60

        edited = loop.run(store.apply(instance(spec={"settings": {"tier": "large"}})))

        assert edited.spec == {"settings": {"tier": "large"}}
        assert (edited.generation, edited.uid, edited.finalizers) == (2, created.uid, ("setpoint.dev/finalizer",))
        assert edited.status == READY
        assert metadata_of(edited)["creationTimestamp"] == metadata_of(created)["creationTimestamp"]

    def test_labels_and_annotations_replace_the_earlier_ones_in_the_same_generation(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        before = loop.run(store.apply(instance(labels={"a": "1"}, annotations={"x": "1"})))

        after = loop.run(store.apply(instance(labels={"b": "2"}, annotations={"y": "2"})))

        assert (after.labels, after.annotations, after.generation) == ({"b": "2"}, {"y": "2"}, 1)
        assert after.revision != before.revision

    def test_owner_references_are_the_author_s(self, store: Store, loop: asyncio.Runner) -> None:
        owner = {"apiVersion": "v1", "kind": "Parent", "name": "p", "uid": "u"}

        owned = loop.run(store.apply(instance(ownerReferences=[owner])))
        free = loop.run(store.apply(instance()))

        assert metadata_of(owned)["ownerReferences"] == [owner]
        assert "ownerReferences" not in metadata_of(free)

    def test_metadata_that_only_a_store_writes_is_ignored(self, store: Store, loop: asyncio.Runner) -> None:
        manifest = instance(uid="mine", resourceVersion="99", generation=7, finalizers=["f"], deletionTimestamp="now")

        created = loop.run(store.apply({**manifest, "status": READY}))

        assert (created.generation, created.finalizers, created.status) == (1, (), {})
        assert created.uid not in ("", "mine")
        assert not created.is_deleting

    def test_another_version_of_the_group_is_the_same_resource(self, store: Store, loop: asyncio.Runner) -> None:
        older = loop.run(store.apply(instance()))

        newer = loop.run(store.apply({**instance(), "apiVersion": f"{GROUP}/v1"}))

        assert newer.uid == older.uid
        assert len(loop.run(store.list()).resources) == 1

    def test_every_value_comes_back_as_it_went_in(self, store: Store, loop: asyncio.Runner) -> None:
        spec: Json = {
            "whole": 2**63 - 1,
            "least": -(2**63),
            "real": 0.1,
            "small": 5e-324,
            "text": "\U0001f600",
            "null": None,
            "empty": {"list": [], "object": {}, "text": ""},
        }

        loop.run(store.apply(instance(spec=spec)))

        found = loop.run(store.get(REF))
        assert found is not None
        assert same(found.spec, spec)

    @pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**40])
    def test_a_number_beyond_64_bits_comes_back_or_is_refused(
        self, store: Store, loop: asyncio.Runner, number: int
    ) -> None:
        try:
            expected_document = loop.run(store.apply(instance(spec={"size": number})))
        except ManifestInvalid as error:
            assert str(error).startswith(f"SQLInstance db: spec.size cannot be {number}: ")  # noqa: PT017 - or it is expected_document
            assert loop.run(store.get(REF)) is None
        else:
            assert same(expected_document.spec, {"size": number})

    def test_changing_a_returned_document_does_not_change_the_store(self, store: Store, loop: asyncio.Runner) -> None:
        settings = {"tier": "small"}
        created = loop.run(store.apply(instance(spec={"settings": settings})))
        settings["tier"] = "changed in the manifest"
        spec = created.document["spec"]
        assert isinstance(spec, dict)
        spec["settings"]["tier"] = "changed in the answer"

        found = loop.run(store.get(REF))

        assert found is not None
        assert found.spec == {"settings": {"tier": "small"}}

    def test_no_manifest_is_applied_to_a_resource_that_is_being_deleted(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        loop.run(store.set_finalizers(loop.run(store.apply(instance())), ("x.dev/f",)))
        loop.run(store.delete(REF))

        with pytest.raises(NotReady, match=r"^SQLInstance default/db is being deleted: wait until it is gone"):
            loop.run(store.apply(instance()))
        with pytest.raises(NotReady, match=r"^SQLInstance default/db is being deleted: wait until it is gone"):
            loop.run(store.apply(instance(spec={"region": "another"}, annotations={"how": "gently"})))

    def test_leaving_out_a_reconcile_request_is_no_change(self, store: Store, loop: asyncio.Runner) -> None:
        manifest = instance(annotations={"how": "gently", RECONCILE_REQUESTED: "at noon"})
        loop.run(store.set_finalizers(loop.run(store.apply(manifest)), ("x.dev/f",)))
        loop.run(store.delete(REF))

        with pytest.raises(NotReady, match=r"^SQLInstance default/db is being deleted: wait until it is gone"):
            loop.run(store.apply(instance(annotations={"how": "gently"})))

    def test_annotations_can_be_applied_during_deletion(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.set_finalizers(loop.run(store.apply(instance(annotations={"how": "gently"}))), ("x.dev/f",)))
        loop.run(store.delete(REF))

        edited = loop.run(store.apply(instance(annotations={"how": "at once"})))

        assert (edited.annotations, edited.is_deleting) == ({"how": "at once"}, True)

    def test_a_name_that_is_used_again_has_a_new_uid(self, store: Store, loop: asyncio.Runner) -> None:
        first = loop.run(store.apply(instance(annotations={"a": "1"})))
        loop.run(store.delete(REF))

        again = loop.run(store.apply(instance()))

        assert again.uid != first.uid
        assert (again.generation, again.annotations) == (1, {})


class Refusing:
    """What `apply` refuses, and its messages."""

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"apiVersion": None}, 'SQLInstance db: apiVersion is missing: write "v1", or a group and a version'),
            ({"apiVersion": "a/b/c"}, "SQLInstance db: apiVersion cannot be 'a/b/c': write"),
            ({"kind": 5}, "the object db: kind is a number: write it as text, in quotes"),
            ({"metadata": None}, "SQLInstance: metadata is missing or null: write an object with a name"),
            ({"metadata": {}}, "SQLInstance: metadata.name is missing: write lower-case letters, digits"),
            ({"metadata": {"name": "My_DB"}}, "SQLInstance My_DB: metadata.name cannot be 'My_DB': write lower-case"),
            ({"metadata": {"name": "a" * 254}}, "at most 253 characters"),
            ({"metadata": {"name": "a..b"}}, "metadata.name cannot be 'a..b'"),
            ({"metadata": {"name": "db", "namespace": "a.b"}}, "metadata.namespace cannot be 'a.b': write"),
            ({"metadata": {"name": "db", "labels": ["a"]}}, "metadata.labels is a list: write an object of texts"),
            ({"metadata": {"name": "db", "labels": {"a": "b c"}}}, "metadata.labels.a cannot be 'b c': write letters"),
            ({"metadata": {"name": "db", "labels": {"a b": "c"}}}, 'metadata.labels["a b"] cannot have that key'),
            (
                {"metadata": {"name": "db", "annotations": {"on": True}}},
                "metadata.annotations.on is true or false: write it as text, in quotes",
            ),
            ({"metadata": {"name": "db", "lables": {}}}, "metadata.lables means nothing: write labels, or take it out"),
            ({"metadata": {"name": "db", "ownerReferences": ["a"]}}, "metadata.ownerReferences is no list of objects"),
            ({"spec": {"a": float("nan")}}, "spec.a: nan is not a JSON number"),
        ],
    )
    def test_an_invalid_manifest_is_refused_with_the_member_and_what_to_write(
        self, store: Store, loop: asyncio.Runner, changes: Mapping[str, Any], message: str
    ) -> None:
        manifest = {name: value for name, value in {**instance(), **changes}.items() if value is not None}

        with pytest.raises(ManifestInvalid) as caught:
            loop.run(store.apply(manifest))

        assert message in str(caught.value)
        assert loop.run(store.list()).resources == ()

    def test_a_manifest_is_an_object(self, store: Store, loop: asyncio.Runner) -> None:
        with pytest.raises(ManifestInvalid, match=r"^a manifest is a list: write an object with apiVersion, kind and"):
            loop.run(store.apply(cast(JsonObject, ["apiVersion"])))


class Annotating:
    """Which writer an annotation belongs to."""

    def test_annotations_of_the_engine_survive_a_manifest_that_does_not_name_them(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        loop.run(store.annotate(loop.run(store.apply(instance(annotations={"mine": "1"}))), {"cookie": "c"}))

        edited = loop.run(store.apply(instance(annotations={"other": "2"})))

        assert edited.annotations == {"cookie": "c", "other": "2"}

    def test_applying_a_document_as_it_was_read_changes_nothing_and_no_ownership_of_annotations(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        annotated = loop.run(store.annotate(loop.run(store.apply(instance())), {"cookie": "c"}))

        assert loop.run(store.apply(annotated.document)) == annotated
        assert loop.run(store.apply(instance())).annotations == {"cookie": "c"}

    def test_an_author_takes_over_an_annotation_by_changing_its_value(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.annotate(loop.run(store.apply(instance())), {"project": "guessed"}))

        taken = loop.run(store.apply(instance(annotations={"project": "mine"})))
        dropped = loop.run(store.apply(instance()))

        assert (taken.annotations, dropped.annotations) == ({"project": "mine"}, {})

    def test_none_removes_an_annotation(self, store: Store, loop: asyncio.Runner) -> None:
        annotated = loop.run(store.annotate(loop.run(store.apply(instance())), {"a": "1", "b": "2"}))

        assert loop.run(store.annotate(annotated, {"a": None, "c": None})).annotations == {"b": "2"}

    def test_an_annotation_with_the_value_it_has_changes_nothing(self, store: Store, loop: asyncio.Runner) -> None:
        annotated = loop.run(store.annotate(loop.run(store.apply(instance())), {"a": "1"}))

        assert loop.run(store.annotate(annotated, {"a": "1", "absent": None})) == annotated


class Status:
    """What `update_status` does, and when any write by revision is refused."""

    def test_a_status_changes_the_revision_and_nothing_else(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance(labels={"a": "1"})))

        updated = loop.run(store.update_status(created, READY))

        metadata = {**metadata_of(created), "resourceVersion": updated.revision}
        assert updated.document == {**created.document, "metadata": metadata, "status": READY}
        assert updated.revision != created.revision

    def test_the_same_status_changes_nothing(self, store: Store, loop: asyncio.Runner) -> None:
        updated = loop.run(store.update_status(loop.run(store.apply(instance())), {"size": 1, "name": "x"}))

        assert loop.run(store.update_status(updated, {"name": "x", "size": 1.0})) == updated

    def test_an_empty_status_is_no_status(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance()))

        assert loop.run(store.update_status(created, {})) == created
        cleared = loop.run(store.update_status(loop.run(store.update_status(created, READY)), {}))
        assert "status" not in cleared.document

    def test_a_write_over_an_older_revision_is_a_conflict(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.apply(instance()))
        loop.run(store.update_status(seen, READY))

        for write in (
            store.update_status(seen, READY),
            store.set_finalizers(seen, ("x.dev/f",)),
            store.annotate(seen, {"a": "1"}),
        ):
            with pytest.raises(WriteConflict, match=r"^SQLInstance default/db has changed since it was read"):
                loop.run(write)

    def test_a_write_to_a_deleted_resource_is_a_conflict(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.apply(instance()))
        loop.run(store.delete(REF))

        with pytest.raises(WriteConflict, match="SQLInstance default/db is gone"):
            loop.run(store.update_status(seen, READY))

    def test_a_write_to_a_recreated_resource_is_a_conflict(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.apply(instance()))
        loop.run(store.delete(REF))
        loop.run(store.apply(instance()))

        with pytest.raises(WriteConflict, match="SQLInstance default/db was deleted and made anew"):
            loop.run(store.set_finalizers(seen, ("x.dev/f",)))


class Deleting:
    """Deletion with and without finalizers."""

    def test_finalizers_are_kept_once_each_and_in_order(self, store: Store, loop: asyncio.Runner) -> None:
        held = loop.run(store.set_finalizers(loop.run(store.apply(instance())), ("x.dev/b", "x.dev/a", "x.dev/b")))

        assert held is not None
        assert (held.finalizers, held.generation) == (("x.dev/b", "x.dev/a"), 1)
        assert loop.run(store.set_finalizers(held, ("x.dev/b", "x.dev/a"))) == held

    def test_a_resource_without_finalizers_is_removed(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.apply(instance()))

        assert loop.run(store.delete(REF)) is None
        assert loop.run(store.get(REF)) is None

    def test_a_resource_with_finalizers_is_marked_for_deletion_once(
        self, store: Store, loop: asyncio.Runner, clock: FakeClock
    ) -> None:
        loop.run(store.set_finalizers(loop.run(store.apply(instance())), ("x.dev/f",)))

        marked = loop.run(store.delete(REF))
        clock.seconds = 10
        again = loop.run(store.delete(REF))

        assert marked is not None
        assert marked.is_deleting
        assert again == marked

    def test_a_resource_that_is_being_deleted_is_removed_with_its_last_finalizer(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        loop.run(store.set_finalizers(loop.run(store.apply(instance())), ("x.dev/f", "x.dev/g")))
        marked = loop.run(store.delete(REF))
        assert marked is not None

        fewer = loop.run(store.set_finalizers(marked, ("x.dev/g",)))
        assert fewer is not None
        assert loop.run(store.set_finalizers(fewer, ())) is None

        assert loop.run(store.get(REF)) is None

    def test_removing_the_last_finalizer_without_a_deletion_keeps_the_resource(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        held = loop.run(store.set_finalizers(loop.run(store.apply(instance())), ("x.dev/f",)))
        assert held is not None

        free = loop.run(store.set_finalizers(held, ()))

        assert free is not None
        assert "finalizers" not in metadata_of(free)

    def test_no_finalizer_can_be_added_to_a_resource_that_is_being_deleted(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        loop.run(store.set_finalizers(loop.run(store.apply(instance())), ("x.dev/f",)))
        marked = loop.run(store.delete(REF))
        assert marked is not None

        with pytest.raises(StoreError, match="is being deleted: finalizers can be taken off, not added"):
            loop.run(store.set_finalizers(marked, ("x.dev/f", "x.dev/g")))

    def test_deleting_an_absent_resource_does_nothing(self, store: Store, loop: asyncio.Runner) -> None:
        assert loop.run(store.delete(REF)) is None


class Listing:
    """What `list` finds."""

    def test_lists_what_matches_every_part_of_the_query_sorted_by_ref(self, store: Store, loop: asyncio.Runner) -> None:
        for name, namespace, team in (("b", "two", "x"), ("c", "one", "x"), ("a", "two", "y"), ("a", "one", "x")):
            loop.run(store.apply(instance(name, namespace=namespace, labels={"team": team, "all": "yes"})))
        loop.run(store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "one"}}))

        def found(query: ResourceQuery) -> list[str]:
            resources = loop.run(store.list(query)).resources
            return [f"{one.ref.kind[:3]} {one.ref.namespace}/{one.ref.name}" for one in resources]

        assert found(ResourceQuery()) == ["Sec one/a", "SQL one/a", "SQL one/c", "SQL two/a", "SQL two/b"]
        assert found(ResourceQuery(group="")) == ["Sec one/a"]
        assert found(ResourceQuery(group=GROUP, namespace="two")) == ["SQL two/a", "SQL two/b"]
        assert found(ResourceQuery(kind="SQLInstance", labels={"team": "x", "all": "yes"})) == [
            "SQL one/a",
            "SQL one/c",
            "SQL two/b",
        ]
        assert found(ResourceQuery(kind="Nothing")) == []

    def test_a_new_store_is_empty(self, store: Store, loop: asyncio.Runner) -> None:
        assert loop.run(store.list()).resources == ()
        assert loop.run(store.get(ResourceRef("", "Secret", "default", "x"))) is None
