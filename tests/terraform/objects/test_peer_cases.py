"""The table of another provider's cases is whole: each is shown by a test that exists."""

import re
from pathlib import Path

import pytest

from tests.terraform.objects.peer_cases import OBJECTS, WAITS, Case

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("case", [*OBJECTS, *WAITS], ids=lambda one: one.name.replace(" ", "-"))
def test_each_case_is_shown_by_a_test_that_exists(case: Case) -> None:
    file, _, name = case.test.partition("::")

    assert re.search(rf"^def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_the_table_has_every_case_once() -> None:
    assert (len(OBJECTS), len(WAITS)) == (82, 27)
    assert len({one.name for one in (*OBJECTS, *WAITS)}) == 82 + 27
