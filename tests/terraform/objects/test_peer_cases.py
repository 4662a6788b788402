"""The tables of another provider's cases are whole: each is shown by a test that exists and is run."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.terraform.objects.peer_cases import OBJECTS, WAITS
from tests.terraform.patches.peer_cases import DIFFERS, INVALID, PATCHED, REFUSED
from tests.terraform.patches.peer_rows import PATCHES
from tests.terraform.peer_case import PeerCase

TESTS = Path(__file__).parents[2]
# The table that a test runs, by the name that the test imports.
TABLES = {"PATCHED": PATCHED, "INVALID": INVALID, "REFUSED": REFUSED}


@cache
def _tests(file: str) -> dict[str, ast.FunctionDef]:
    """The tests of a file that no mark skips."""
    found = ast.parse((TESTS / file).read_text(encoding="utf-8")).body
    functions = {one.name: one for one in found if isinstance(one, ast.FunctionDef)}
    return {name: one for name, one in functions.items() if not any(map(_is_skipped, one.decorator_list))}


def _is_skipped(decorator: ast.expr) -> bool:
    return any(word in ast.unparse(decorator) for word in ("skip", "xfail"))


def _body(test: str) -> ast.FunctionDef:
    file, _, name = test.partition("::")
    assert name.startswith("test_")
    return _tests(file)[name]


@pytest.mark.parametrize("case", [*OBJECTS, *WAITS, *PATCHES], ids=lambda one: one.name.replace(" ", "-"))
def test_each_case_is_shown_by_a_test_that_exists_and_asserts_something(case: PeerCase) -> None:
    words = ast.unparse(_body(case.test))

    assert any(word in words for word in ("assert ", "applied(", "assert_no_changes("))


@pytest.mark.parametrize("row", [one for one in PATCHES if one.example], ids=lambda one: one.name.replace(" ", "-"))
def test_each_example_of_a_patch_is_in_the_table_that_its_test_runs(row: PeerCase) -> None:
    names = {one.id for one in ast.walk(_body(row.test)) if isinstance(one, ast.Name)}
    tables = [table for name, table in TABLES.items() if name in names]

    assert any(row.example in table for table in tables)


def test_the_tables_have_every_case_once_and_every_difference_its_row() -> None:
    assert (len(OBJECTS), len(WAITS)) == (82, 27)
    assert len({one.name for one in (*OBJECTS, *WAITS)}) == 82 + 27
    assert len({one.name for one in PATCHES}) == len(PATCHES) >= 45
    assert {one.differs for one in PATCHES if one.differs} == set(DIFFERS)
