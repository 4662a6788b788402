"""The pages of the kinds are held against the kinds."""

import re
from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import UNSET, Struct, UnsetType

from setpoint.app import described_types
from setpoint.app.kind_reference import MARK_WORDS
from setpoint.core.schema.annotations import ANNOTATIONS, FORCE_DESTROY, KNOWN, MERGE, PROJECT_ID
from setpoint.core.schema.shape import Default, Keyed, Mark
from setpoint.core.wait.wait_for import WAIT_CRITERIA, FieldWait
from setpoint.engine.owner import Owner
from setpoint.kinds.gcp.shared.config_connector import SpecReference
from setpoint.terraform.resources.vocabulary import attribute_name
from tests.docs.reference import (
    ANNOTATIONS_PAGE,
    HEAD,
    PAGES,
    README,
    TRUSTEE,
    rows_of,
    status_rows_of,
    with_annotations,
    with_cookies,
    with_every_status,
    with_policies,
    with_table,
    with_tables,
)
from tests.kinds.full_responses import PAGES as PAGES_WITH_RESPONSES
from tests.kinds.full_responses import kind_of, outputs_of


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_table_has_every_field_of_the_type(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert text == with_tables(text, PAGES[page]), "stale: run .venv/bin/python -m tests.docs.reference"


def test_the_common_status_table_matches_the_types() -> None:
    text = README.read_text(encoding="utf-8")

    assert text == with_cookies(with_every_status(text)), "stale: run .venv/bin/python -m tests.docs.reference"


def test_the_merge_policy_table_of_a_kbs_config_matches_the_code() -> None:
    text = TRUSTEE.read_text(encoding="utf-8")

    assert text == with_policies(text), "stale: run .venv/bin/python -m tests.docs.reference"


def test_the_tables_of_annotations_match_the_list() -> None:
    text = ANNOTATIONS_PAGE.read_text(encoding="utf-8")

    assert text == with_annotations(text), "stale: run .venv/bin/python -m tests.docs.reference"


def test_the_kinds_that_an_annotation_is_for_are_those_that_read_it() -> None:
    kinds = {name: one for (_, name), one in described_types().items()}

    def readers(key: str) -> set[str]:
        return {name for name, one in kinds.items() if key in one.annotations}

    named = {one.key: {name for name in kinds if name in re.findall(r"\w+", one.scope)} for one in ANNOTATIONS}
    assert (
        readers(PROJECT_ID)
        == named[PROJECT_ID]
        == {
            "SQLInstance",
            "SQLDatabase",
            "SQLUser",
            "StorageBucket",
            "IAMPolicy",
            "IAMPartialPolicy",
            "IAMPolicyMember",
            "IAMServiceAccountKey",
        }
    )
    assert readers(FORCE_DESTROY) == named[FORCE_DESTROY] == {"StorageBucket"}
    assert {name for name, one in kinds.items() if isinstance(one, Owner)} == named[MERGE]


def test_every_annotation_that_the_code_names_is_in_the_list() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path("src").rglob("*.py"))
    named = set(re.findall(r"\b(?:cnrm\.cloud\.google\.com|setpoint\.dev)/[a-z][a-z-]*[a-z]\b(?!\d)", source))

    finalizers = {f"cnrm.cloud.google.com/{name}" for name in ("finalizer", "deletion-defender")}
    # Of definitions and of Leases, not of resources.
    others = {"setpoint.dev/children", "setpoint.dev/preview", "setpoint.dev/notified"}
    assert named - finalizers - others - set(KNOWN) == set()


def test_every_mark_is_in_the_docs() -> None:
    text = README.read_text(encoding="utf-8")

    assert set(MARK_WORDS) == set(Mark)
    assert [word for word in ("required", *MARK_WORDS.values()) if f"| {word} | " not in text] == []


class _Rule(Struct):
    name: str
    """What it is called."""
    age: Annotated[int | None | UnsetType, Default(7), Mark.PROTECTED] = UNSET


class _Spec(Struct):
    bucketRef: Annotated[SpecReference, Mark.IMMUTABLE]
    keyed: Annotated[list[_Rule] | None | UnsetType, Keyed("name")] = UNSET
    whole: list[_Rule] | UnsetType = UNSET
    mode: Literal["off", "on"] | UnsetType = UNSET
    names: Annotated[list[str] | UnsetType, Default([])] = UNSET


class _Metadata(Struct):
    labels: dict[str, str] | UnsetType = UNSET


class _Tree(Struct):
    spec: _Spec
    """What it should be."""
    metadata: _Metadata | UnsetType = UNSET
    made: bool | UnsetType = UNSET


def test_a_row_follows_the_type() -> None:
    assert rows_of(_Tree) == [
        "| `spec.bucketRef` | | reference | | required, immutable |",
        "| `spec.keyed` | | list of objects, told apart by `name` | | |",
        "| `spec.keyed[name=…].name` | What it is called. | text | | required |",
        "| `spec.keyed[name=…].age` | | integer | `7` | protected |",
        "| `spec.whole` | | list of objects | | |",
        "| `spec.whole[…].name` | What it is called. | text | | required |",
        "| `spec.whole[…].age` | | integer | `7` | protected |",
        '| `spec.mode` | | `"off"` or `"on"` | | |',
        "| `spec.names` | | list of text | `[]` | |",
        "| `metadata.labels` | | text by key | | |",
    ]


def test_a_row_of_the_status_follows_the_docstring_of_the_field() -> None:
    assert status_rows_of(_Tree)[0] == "| `status.spec` | What it should be. |"


def test_only_the_table_is_rewritten() -> None:
    page = f"before\n\n{HEAD}| `gone` | text | | |\n\nafter\n"

    assert with_table(page, HEAD, ["| `new` |"]) == f"before\n\n{HEAD}| `new` |\n\nafter\n"


def test_a_page_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="not 0"):
        with_table("nothing here\n", HEAD, [])


# --- Status ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem in PAGES_WITH_RESPONSES], ids=str)
def test_a_page_names_annotations_and_outputs_of_its_kind(page: Path) -> None:
    text, kind = page.read_text(encoding="utf-8"), kind_of(page.stem)

    assert [name for name in kind.annotations if f"`{name}" not in text] == []
    assert re.findall(r"^\| `status\.(\w+)` \|", text, re.MULTILINE) == sorted(outputs_of(page.stem))


def test_every_wait_criterion_is_on_the_pages_that_are_written_by_hand() -> None:
    names = ("how-to/wait-for-an-object.md", "errors.md", "terraform.md")
    how_to, errors, terraform = (Path("docs", name).read_text("utf-8") for name in names)
    *first, last = (f"`{one.member}`" for one in WAIT_CRITERIA)

    assert [one.member for one in WAIT_CRITERIA if f"\n| `{one.member}: " not in how_to] == []
    assert f"`waitFor` is one of {', '.join(first)} and {last}, and perhaps a `timeout`." in errors
    without_output = sorted(attribute_name(one.member) for one in WAIT_CRITERIA if one is not FieldWait)
    assert f"| {', '.join(f'`{name}`' for name in without_output)} | null;" in terraform
