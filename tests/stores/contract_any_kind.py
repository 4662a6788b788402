"""The contract of every store about objects of kinds without a controller."""

import asyncio

import pytest

from setpoint.core.merge.children import contains_all
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import WriteConflict
from tests.stores.objects import CONFIG_MAP, DEPLOYMENT, OPAQUE, STORAGE_CLASS, VOLUME, ref_of
from tests.stores.samples import metadata_of

NAMESPACED = pytest.mark.parametrize("document", [CONFIG_MAP, OPAQUE, DEPLOYMENT], ids=lambda one: one["kind"])
EVERY = pytest.mark.parametrize(
    "document", [CONFIG_MAP, OPAQUE, DEPLOYMENT, STORAGE_CLASS, VOLUME], ids=lambda one: one["kind"]
)


def labelled(resource: Resource) -> JsonObject:
    return {**resource.document, "metadata": {**metadata_of(resource), "labels": {"team": "b"}}}


class AnyKind:
    """Objects of any kind are created, read, replaced and deleted."""

    @EVERY
    def test_a_created_object_is_read_back(self, store: Store, loop: asyncio.Runner, document: JsonObject) -> None:
        made = loop.run(store.create(document))

        assert contains_all(made.document, document)
        assert loop.run(store.get(ref_of(document))) == made

    @EVERY
    def test_replacing_an_object_by_itself_changes_nothing(
        self, store: Store, loop: asyncio.Runner, document: JsonObject
    ) -> None:
        loop.run(store.create(document))
        seen = loop.run(store.get(ref_of(document)))
        assert seen is not None

        assert loop.run(store.replace(seen, seen.document)) == seen
        assert loop.run(store.get(ref_of(document))) == seen

    @EVERY
    def test_labels_are_replaced_and_nothing_else(
        self, store: Store, loop: asyncio.Runner, document: JsonObject
    ) -> None:
        seen = loop.run(store.create(document))

        after = loop.run(store.replace(seen, labelled(seen)))

        metadata = {**metadata_of(seen), "labels": {"team": "b"}, "resourceVersion": after.revision}
        assert after.document == {**seen.document, "metadata": metadata}
        assert after.revision != seen.revision
        assert loop.run(store.get(ref_of(document))) == after

    @EVERY
    def test_a_replacement_over_an_older_revision_changes_nothing(
        self, store: Store, loop: asyncio.Runner, document: JsonObject
    ) -> None:
        seen = loop.run(store.create(document))
        now = loop.run(store.replace(seen, labelled(seen)))

        with pytest.raises(WriteConflict, match="has changed since it was read"):
            loop.run(store.replace(seen, {**seen.document, "metadata": {**metadata_of(seen), "labels": {"c": "d"}}}))
        with pytest.raises(WriteConflict, match=rf"is there already \(uid {seen.uid}\): read it and plan again$"):
            loop.run(store.create(document))

        assert loop.run(store.get(ref_of(document))) == now

    @NAMESPACED
    def test_a_deleted_object_is_gone(self, store: Store, loop: asyncio.Runner, document: JsonObject) -> None:
        loop.run(store.create(document))

        assert loop.run(store.delete(ref_of(document))) is None
        assert loop.run(store.get(ref_of(document))) is None
        assert loop.run(store.delete(ref_of(document))) is None

    def test_contents_are_replaced(self, store: Store, loop: asyncio.Runner) -> None:
        seen = loop.run(store.create(CONFIG_MAP))

        after = loop.run(store.replace(seen, {**seen.document, "data": {"b": "2"}}))

        assert (after.document["data"], after.labels, after.uid) == ({"b": "2"}, {"team": "a"}, seen.uid)

    def test_an_object_of_an_unknown_kind_does_not_exist(self, store: Store, loop: asyncio.Runner) -> None:
        ref = ResourceRef("none.dev", "Nothing", "default", "x")

        assert loop.run(store.get(ref)) is None
        assert loop.run(store.delete(ref)) is None


class NoNamespace:
    """Cluster-scoped objects are found without a namespace."""

    def test_a_cluster_scoped_object_is_deleted(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.create(STORAGE_CLASS))

        assert loop.run(store.delete(ref_of(STORAGE_CLASS))) is None
        assert loop.run(store.get(ref_of(STORAGE_CLASS))) is None

    def test_an_empty_namespace_in_a_document_counts_as_none(self, store: Store, loop: asyncio.Runner) -> None:
        made = loop.run(store.create({**STORAGE_CLASS, "metadata": {"name": "slow", "namespace": ""}}))

        assert loop.run(store.get(ref_of(STORAGE_CLASS))) == made
