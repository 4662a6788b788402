"""The contract, run by pytest in a project of another author: a correct kind passes, and each defect is found."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from setpoint.testing.contract import CLAIMS
from setpoint.testing.kind_parts import Part
from tests.testing.toy_library.book_fixture import BookFixture
from tests.testing.toy_library.defects import FOUND_BY

pytestmark = pytest.mark.slow

CONTRACT = """
from setpoint.testing import KindContract
from toy_library.book_fixture import BookFixture


class TestBook(KindContract):
    fixture = BookFixture
"""
DEFECTS = """
from setpoint.testing import KindContract
from toy_library.defects import FOUND_BY, with_defect

for defect in FOUND_BY:
    name = f"Test{defect.__name__}"
    globals()[name] = type(name, (KindContract,), {"fixture": with_defect(defect)})
"""
SETTINGS = """
[pytest]
addopts = -p no:cacheprovider --strict-markers --strict-config
filterwarnings = error
xfail_strict = true
"""


@dataclass(frozen=True)
class Results:
    """What each test came to, by its class and its id, and what was printed."""

    outcomes: dict[tuple[str, str], str]
    messages: dict[tuple[str, str], str]
    printed: str

    def of(self, name: str) -> dict[str, str]:
        """The outcomes of the tests of a class, by the claim."""
        return {claim: outcome for (found, claim), outcome in self.outcomes.items() if found == name}


def run_project(folder: Path, tests: str, *ids: str, options: Sequence[str] = ()) -> Results:
    """Runs pytest in a folder of its own, with the toy library and these tests in it."""
    shutil.copytree(Path(__file__).parent / "toy_library", folder / "toy_library", ignore=shutil.ignore_patterns("__*"))
    (folder / "test_toy.py").write_text(tests, encoding="utf-8")
    (folder / "pytest.ini").write_text(SETTINGS, encoding="utf-8")
    chosen = [f"test_toy.py::{one}" for one in ids] or ["test_toy.py"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:randomly",
        "--junitxml=results.xml",
        *options,
        *chosen,
    ]
    # Plug-ins of this environment are none of the author's.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": ""}
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert (folder / "results.xml").exists(), ended.stdout + ended.stderr
    outcomes, messages = {}, {}
    for case in ElementTree.parse(folder / "results.xml").iter("testcase"):
        key = case.attrib["classname"].rpartition(".")[2], case.attrib["name"]
        found = next(iter(case), None)
        outcomes[key] = "passed" if found is None else found.tag
        messages[key] = "" if found is None else f"{found.attrib.get('message', '')}\n{found.text}"
    return Results(outcomes, messages, ended.stdout)


@pytest.fixture(scope="module")
def correct(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The whole contract on the correct kind."""
    return run_project(tmp_path_factory.mktemp("correct"), CONTRACT)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """For each defect the claim that has to find it, and those for the other defects, too, as far as they are short."""
    short = [claim.name for claim in CLAIMS if claim.name in FOUND_BY.values() and not claim.is_long]
    ids = [
        f"Test{defect.__name__}::test_lifecycle[{claim}]"
        for defect, found_by in FOUND_BY.items()
        for claim in dict.fromkeys([found_by, *short])
    ]
    return run_project(tmp_path_factory.mktemp("broken"), DEFECTS, *ids)


def test_a_correct_kind_passes_every_claim_that_it_has_the_parts_for(correct: Results) -> None:
    outcomes = correct.of("TestBook")
    lacking = {f"test_lifecycle[lacks {part}]" for part in BookFixture.lacking()}
    claims = {f"test_lifecycle[{claim.name}]": claim for claim in CLAIMS if claim.fits(BookFixture)}

    assert {name for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")} == set()
    assert {name for name, outcome in outcomes.items() if outcome == "skipped"} == lacking | {
        name for name, claim in claims.items() if claim.parts & {Part.FORMER, Part.LIST, Part.STATELESS}
    }
    assert set(outcomes) == {
        *claims,
        *lacking,
        "test_the_fixture_has_each_part_or_says_why_the_kind_lacks_it",
    }
    assert sum(outcome == "passed" for outcome in outcomes.values()) > 170


def test_what_a_kind_lacks_is_reported_with_the_reason(correct: Results) -> None:
    assert "a book has no labels (claims left out: 1)" in correct.printed
    assert "Book lacks former: it has no former implementation" in correct.printed


@pytest.mark.parametrize("defect", FOUND_BY, ids=lambda defect: defect.__name__)
def test_a_defect_is_found_by_the_claim_that_names_it(defect: type, broken: Results) -> None:
    outcomes = broken.of(f"Test{defect.__name__}")

    assert outcomes[f"test_lifecycle[{FOUND_BY[defect]}]"] == "failure"
    # It is found by what it does, not because nothing works any more.
    assert "passed" in outcomes.values()


def test_a_failure_shows_both_sides_of_the_comparison(broken: Results) -> None:
    """Assertions are rewritten in a project that only imports the package."""
    message = broken.messages["TestWritesOnEveryPass", "test_lifecycle[creates then rests]"]

    assert "== ['create']" in message
    assert "more items, first extra item: 'update'" in message


def test_a_second_creation_is_told_with_the_await_that_it_comes_after(broken: Results) -> None:
    message = broken.messages["TestCreatesTwice", f"test_lifecycle[{next(iter(FOUND_BY.values()))}]"]

    assert re.search(r"killed after await \d+: created 2 times: \['moby-dick', 'moby-dick-1'\]", message)
