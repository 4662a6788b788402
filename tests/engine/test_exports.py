"""The format of an export, and documents that are none."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from setpoint.core.values.yaml_documents import read_documents, write_document
from setpoint.engine.transfer.export_format import StoreExport, export_documents, read_export
from setpoint.errors import ManifestInvalid
from tests.engine.clock import FakeClock
from tests.engine.transfer_harness import TransferHarness, export_of, new_store, reread

Trees = list[dict[str, Any]]


async def _an_export() -> StoreExport:
    clock = FakeClock()
    harness = TransferHarness(new_store(clock), clock)
    await harness.secret("sesame")
    await harness.apply("a", {"size": 1, "passwordRef": "s"}, labels={"team": "web"})
    await harness.settle("a")
    return await export_of(harness)


@pytest.fixture(scope="module")
def trees() -> Trees:
    return [dict(tree) for tree in export_documents(asyncio.run(_an_export()))]


def written(trees: Trees) -> StoreExport:
    text = "---\n".join(write_document(tree) for tree in trees)
    return read_export(read_documents(text, "e.yaml"))


def test_begins_with_a_header_and_ends_with_an_end(trees: Trees) -> None:
    assert trees[0] == {
        "apiVersion": "setpoint.dev/v1alpha1",
        "kind": "Export",
        "format": 1,
        "setpoint": "0.1.0",
        "at": "2026-01-01T00:00:00Z",
        "store": "memory",
        "secrets": True,
        "paused": False,
    }
    assert [tree["kind"] for tree in trees] == ["Export", "Secret", "Gadget", "ExportEnd"]
    assert trees[-1]["documents"] == 2


def test_an_exported_resource_has_manifest_stored_state_and_facts(trees: Trees) -> None:
    resource = trees[2]

    assert list(resource) == ["apiVersion", "kind", "metadata", "spec", "status", "export"]
    assert resource["metadata"] == {
        "name": "a",
        "namespace": "default",
        "labels": {"team": "web"},
        "finalizers": ["cnrm.cloud.google.com/finalizer"],
    }
    assert resource["export"] == {
        "intent": resource["status"]["lastModifiedCookie"].partition("/")[0],
        "versions": {"spec.password": "uid-1/1/password"},
        "observed": True,
        "deleting": False,
    }


def test_an_export_is_read_as_it_was_written(trees: Trees) -> None:
    export = written(trees)

    assert [dict(tree) for tree in export_documents(export)] == trees
    assert [item.place for item in export.items] == ["e.yaml:10", "e.yaml:20"]


def test_several_exports_are_one(trees: Trees) -> None:
    other = [{**trees[0], "paused": True}, trees[2], {**trees[3], "documents": 1}]
    other[1] = {**other[1], "metadata": {"name": "another"}}

    both = written([*trees, *other])

    assert [item.ref.name for item in both.items] == ["s", "a", "another"]
    assert not both.is_paused


def test_no_value_of_a_secret_is_in_what_a_log_would_show(trees: Trees) -> None:
    assert "c2VzYW1l" not in repr(written(trees))


def _without(position: int) -> Callable[[Trees], Trees]:
    return lambda trees: [*trees[:position], *trees[position + 1 :]]


def _with(position: int, **members: Any) -> Callable[[Trees], Trees]:
    return lambda trees: [*trees[:position], {**trees[position], **members}, *trees[position + 1 :]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without(0), "e.yaml:1: this is no export: `setpoint export` makes one; `setpoint apply` takes manifests"),
        (_without(3), "e.yaml:1: this export breaks off: its last document is missing; export again"),
        (_without(2), "2 documents should stand before this, and 1 do: export again"),
        (lambda trees: [*trees[:2], *trees], "e.yaml:1: this export breaks off"),
        (lambda trees: [*trees, trees[2]], "this is no export"),
        (lambda trees: [*trees, *trees], "Secret default/s stands at e.yaml:10 already: keep one of them"),
        (_with(0, format=2, setpoint="3.1"), "e.yaml:1: an export of format 2 cannot be read here: use setpoint 3.1"),
        (_with(0, format=True), "an export of format True cannot be read here"),
        (_with(0, paused="no"), "e.yaml:1: Expected `bool`, got `str`"),
        (_with(0, more=1), "Object contains unknown field `more`"),
        (_with(1, export={}), "e.yaml:10: export: Object missing required field `version`"),
        (_with(2, export=None), "e.yaml:20: export: Expected `object`, got `null`"),
        (_with(2, export={"intent": 1, "versions": {}, "observed": True}), r"Expected `str \| null`, got `int`"),
        (_with(2, kind=7), "e.yaml:21: kind is missing or of another type: export again"),
        (_with(2, metadata={"name": None}), r"e.yaml:23: metadata.name is missing or of another type"),
        (_with(2, metadata=[]), r"e.yaml:22: metadata.name is missing or of another type"),
        (_with(2, status=[]), "status is missing or of another type: export again"),
        (_with(3, documents="2"), "2 documents should stand before this, and 2 do"),
    ],
)
def test_a_refusal_names_document_and_line(trees: Trees, change: Callable[[Trees], Trees], message: str) -> None:
    with pytest.raises(ManifestInvalid, match=message):
        written(change(trees))


@pytest.mark.parametrize("text", ["- 1\n", "x\n", "{}\n"])
def test_a_document_that_is_no_map_is_refused(text: str) -> None:
    with pytest.raises(ManifestInvalid, match=r"e.yaml:1: this is no export"):
        read_export(read_documents(text, "e.yaml"))


def test_a_part_that_is_no_map_is_refused(trees: Trees) -> None:
    text = f"{write_document(trees[0])}---\n- 1\n"

    with pytest.raises(ManifestInvalid, match=r"e.yaml:10: a document of an export is a map: export again"):
        read_export(read_documents(text, "e.yaml"))


def test_a_number_that_no_json_has_is_refused(trees: Trees) -> None:
    text = "---\n".join(write_document(tree) for tree in trees).replace("size: 1", "size: 1e999")

    with pytest.raises(ManifestInvalid, match=r"e.yaml:20: "):
        read_export(read_documents(text, "e.yaml"))


@pytest.mark.parametrize("end", range(2, 100, 7))
def test_a_part_is_never_taken_for_the_whole(trees: Trees, end: int) -> None:
    text = "---\n".join(write_document(tree) for tree in trees)
    part = text[: len(text) * end // 100]

    with pytest.raises(ManifestInvalid):
        read_export(read_documents(part, "e.yaml"))


def test_reading_twice_changes_nothing(trees: Trees) -> None:
    once = written(trees)

    assert [dict(tree) for tree in export_documents(reread(once))] == trees
