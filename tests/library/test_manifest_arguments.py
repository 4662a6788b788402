"""A manifest is text, a path, a map, a typed object, or a resource that was read before."""

import asyncio
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.errors import ManifestInvalid
from setpoint.library.manifests.reading import ReadManifests
from setpoint.library.targets import Selection, select
from tests.laws.json_values import json_values, text
from tests.library.worlds import bucket, world


class Metadata(msgspec.Struct):
    name: str
    annotations: dict[str, str]


class Bucket(msgspec.Struct, rename="camel"):
    """A typed manifest, as a program may have its own."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: "BucketSpec"
    status: str | msgspec.UnsetType = msgspec.UNSET


@dataclass
class BucketSpec:
    location: str


class Place(enum.StrEnum):
    EUROPE = "EU"


def read(*arguments: Any) -> ReadManifests:
    """What is read of the arguments."""
    found = select(arguments, "default").read
    assert found is not None
    return found


def trees(*arguments: Any) -> list[Any]:
    """The manifests in the arguments."""
    found = read(*arguments)
    assert found.problems == ()
    return [one.tree for one in found.manifests]


TYPED = Bucket(
    "storage.cnrm.cloud.google.com/v1beta1",
    "StorageBucket",
    Metadata("logs", {"cnrm.cloud.google.com/project-id": "some-project"}),
    BucketSpec("EU"),
)


@pytest.mark.parametrize(
    "argument",
    [
        bucket(),
        yaml.safe_dump(bucket()),
        json.dumps(bucket()),
        TYPED,
        MappingProxyType(bucket()),
        {**bucket(), "spec": BucketSpec("EU")},
        {**bucket(), "spec": MappingProxyType({"location": Place.EUROPE})},
        [bucket()],
        {"kind": "List", "apiVersion": "v1", "items": [bucket()]},
    ],
    ids=["map", "yaml", "json", "struct", "read-only map", "typed spec", "nested", "list", "List"],
)
def test_each_form_is_the_same_manifest(argument: Any) -> None:
    assert trees(argument) == [bucket()]


def test_a_path_is_a_file_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([bucket("a"), bucket("b")]), encoding="utf-8")
    (tmp_path / "c.json").write_text(json.dumps(bucket("c")), encoding="utf-8")

    assert [one["metadata"]["name"] for one in trees(tmp_path)] == ["a", "b", "c"]
    assert trees(tmp_path / "c.json") == [bucket("c")]


def test_text_that_was_meant_as_a_path_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ManifestInvalid, match="argument 1:1: a manifest is a map with apiVersion, kind and metadata"):
        read(str(tmp_path / "a.yaml"))


@pytest.mark.parametrize("argument", [7, object(), {**bucket(), "spec": object()}, b"kind: X", None])
def test_what_is_no_manifest_is_refused_with_its_place(argument: Any) -> None:
    with pytest.raises(ManifestInvalid, match=r"^argument 1: "):
        read(argument)


def test_a_map_that_contains_itself_is_refused() -> None:
    manifest = bucket()
    manifest["spec"]["labels"] = manifest

    with pytest.raises(ManifestInvalid, match=r"^argument 1: dict is no manifest"):
        read(manifest)


def test_a_manifest_that_is_declared_twice_is_refused_with_both_places() -> None:
    found = read(bucket(), [bucket("more"), bucket()])

    assert [str(one) for one in found.problems] == [
        "StorageBucket default/logs is declared twice, in argument 1 and argument 2[1]: keep one of them"
    ]


def test_kind_and_name_are_a_target_and_everything_else_is_a_manifest() -> None:
    found = select(["StorageBucket/logs", bucket("more")], "web")

    assert isinstance(found, Selection)
    assert (found.targets, found.read is not None and found.read.manifests[0].ref.namespace) == (
        ("StorageBucket/logs",),
        "web",
    )


def test_a_later_change_by_the_caller_does_not_reach_what_was_read() -> None:
    manifest = bucket()
    found = read(manifest).manifests[0]
    manifest["spec"]["location"] = "US"

    assert found.tree == bucket()


@given(st.dictionaries(text, json_values, max_size=3))
def test_a_map_is_read_as_its_own_json(spec: dict[str, Any]) -> None:
    found = read({**bucket(), "spec": spec}).manifests[0].tree["spec"]

    assert isinstance(found, Mapping)
    assert same(found, spec)


def test_what_was_read_can_be_applied_again_and_changes_nothing() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket(), bucket("more"))
            listing = await session.list()
            before = here.writes
            result = await session.apply(listing)

            assert (result.summary, here.writes) == ({"unchanged": 2}, before)
            assert (await session.apply(listing[0])).summary == {"unchanged": 1}

    asyncio.run(main())
