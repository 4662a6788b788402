"""The pages of the kinds are held against the kinds."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.shape import Default, Keyed, Mark
from setpoint.engine.kind import AnyKind, Location, Present
from setpoint.kinds.config_connector import Ref
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from tests.docs.reference import FOLDER, HEAD, PAGES, WORDS, rows_of, with_table


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_table_has_every_field_as_it_is(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert text == with_table(text, PAGES[page]), "stale: run .venv/bin/python -m tests.docs.reference"


def test_every_mark_is_told_and_explained() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert set(WORDS) == set(Mark)
    assert [word for word in ("required", *WORDS.values()) if f"| {word} | " not in text] == []


class _Rule(Struct):
    name: str
    age: Annotated[int | None | UnsetType, Default(7), Mark.PROTECTED] = UNSET


class _Spec(Struct):
    bucketRef: Annotated[Ref, Mark.IMMUTABLE]
    keyed: Annotated[list[_Rule] | None | UnsetType, Keyed("name")] = UNSET
    whole: list[_Rule] | UnsetType = UNSET
    mode: Literal["off", "on"] | UnsetType = UNSET
    names: Annotated[list[str] | UnsetType, Default([])] = UNSET


class _Metadata(Struct):
    labels: dict[str, str] | UnsetType = UNSET


class _Tree(Struct):
    spec: _Spec
    metadata: _Metadata | UnsetType = UNSET
    made: bool | UnsetType = UNSET


def test_a_row_says_what_the_type_says() -> None:
    assert rows_of(_Tree) == [
        "| `spec.bucketRef` | reference | | required, immutable |",
        "| `spec.keyed` | list of objects, told apart by `name` | | |",
        "| `spec.keyed[name=…].name` | text | | required |",
        "| `spec.keyed[name=…].age` | integer | `7` | protected |",
        "| `spec.whole` | list of objects | | |",
        "| `spec.whole[…].name` | text | | required |",
        "| `spec.whole[…].age` | integer | `7` | protected |",
        '| `spec.mode` | `"off"` or `"on"` | | |',
        "| `spec.names` | list of text | `[]` | |",
        "| `metadata.labels` | text by key | | |",
    ]


def test_only_the_table_is_rewritten() -> None:
    page = f"before\n\n{HEAD}| `gone` | text | | |\n\nafter\n"

    assert with_table(page, _Metadata) == f"before\n\n{HEAD}\nafter\n"


def test_a_page_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="not 0"):
        with_table("nothing here\n", _Tree)


# --- Status ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Says:
    """A service with one answer to all questions."""

    answer: Mapping[str, object]

    async def get(self, _: object) -> bytes:
        return msgspec.json.encode(self.answer)


_LINK = {"name": "one", "selfLink": "https://one"}
_INSTANCE = {
    **_LINK,
    "databaseVersion": "POSTGRES_16",
    "settings": {"tier": "small"},
    "availableMaintenanceVersions": ["2"],
    "connectionName": "p:r:one",
    "dnsName": "one.example",
    "instanceType": "CLOUD_SQL_INSTANCE",
    "ipAddresses": [{"ipAddress": "192.0.2.1", "type": "PRIMARY"}, {"ipAddress": "10.0.0.1", "type": "PRIVATE"}],
    "pscServiceAttachmentLink": "link",
    "replicationCluster": {"drReplica": True},
    "serverCaCert": {"cert": "…"},
    "serviceAccountEmailAddress": "one@example.com",
}
_USERS = {"kind": "sql#usersList", "items": [{"name": "one", "sqlserverUserDetails": {"serverRoles": ["reader"]}}]}
_PLACE = "projects/p/instances/one"


# The page, its kind with all that its service may say, and where the object is.
_KINDS: list[tuple[str, Callable[[Any], AnyKind], Mapping[str, object], str]] = [
    ("storage-bucket.md", StorageBucketKind, _LINK, "projects/p/buckets/one"),
    ("sql-instance.md", SqlInstanceKind, _INSTANCE, _PLACE),
    ("sql-database.md", SqlDatabaseKind, _LINK, f"{_PLACE}/databases/one"),
    ("sql-user.md", SqlUserKind, _USERS, f"{_PLACE}/users/one"),
]


@pytest.mark.parametrize(("page", "make", "answer", "place"), _KINDS, ids=[name for name, *_ in _KINDS])
def test_a_page_names_annotations_and_outputs_of_its_kind(
    page: str, make: Callable[[Any], AnyKind], answer: Mapping[str, object], place: str
) -> None:
    text, kind = (FOLDER / page).read_text(encoding="utf-8"), make(_Says(answer))
    seen = asyncio.run(kind.observe(Location(place)))

    assert [name for name in kind.annotations if f"`{name}" not in text] == []
    assert isinstance(seen, Present)
    assert re.findall(r"^\| `status\.(\w+)` \|", text, re.MULTILINE) == sorted(seen.outputs)
