"""The pages "Test a kind" and "Write an owner": what they write passes its contract, run by pytest as they say."""

import re
from pathlib import Path

import pytest

from tests.testing.test_toy_project import run_project

pytestmark = pytest.mark.slow

PAGE = Path("docs/how-to/test-a-kind.md")
OWNER_PAGE = Path("docs/how-to/write-an-owner.md")
BLOCKS = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Claims with a world for each await of a step: they take long, and the toy project has them.
LONG = ("killed", "any")


def test_the_kind_of_the_page_passes_the_contract(tmp_path: Path) -> None:
    *blocks, _ = BLOCKS.findall(PAGE.read_text(encoding="utf-8"))

    results = run_project(tmp_path, "\n".join(blocks), options=["-k", f"not ({' or '.join(LONG)})"])

    outcomes = results.of("TestNote")
    assert {name for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")} == set()
    assert sum(outcome == "passed" for outcome in outcomes.values()) > 90
    assert outcomes["test_lifecycle[lacks secret]"] == "skipped"


def test_the_owner_of_the_page_passes_the_contract_of_owners(tmp_path: Path) -> None:
    owner, contract, _ = BLOCKS.findall(OWNER_PAGE.read_text(encoding="utf-8"))

    results = run_project(tmp_path, "\n".join((owner, contract)))

    outcomes = results.of("TestGreeting")
    assert {name for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")} == set()
    assert sum(outcome == "passed" for outcome in outcomes.values()) > 30
