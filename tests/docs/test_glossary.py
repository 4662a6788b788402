"""The glossary has every public type of the source, and its links lead somewhere."""

import ast
import re
from pathlib import Path

import pytest

from checks.structure import Module, type_names
from tests.docs.glossary import PAGE, meaning_of, source_modules, with_types

VAGUE = re.compile(r"\b(nobody|somebody|whoever|anybody|everybody)\b", re.IGNORECASE)


def test_the_tables_of_types_are_those_of_the_source() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_types(page, source_modules()), "stale: run .venv/bin/python -m tests.docs.glossary"


def test_every_public_type_has_a_row_with_a_meaning() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \| \S.* \| \[", PAGE.read_text(encoding="utf-8"), re.MULTILINE))

    assert [name for module in source_modules() for name in type_names(module.tree) if name not in rows] == []


def test_every_link_leads_to_a_file() -> None:
    targets = set(re.findall(r"\]\((?!http)([^)#]+)", PAGE.read_text(encoding="utf-8")))

    assert [one for one in sorted(targets) if not (PAGE.parent / one).exists()] == []


def test_no_word_has_two_rows() -> None:
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert len(words) > 50
    assert sorted(words) == sorted(set(words))


def test_actors_have_roles() -> None:
    by_hand = PAGE.read_text(encoding="utf-8").partition("## Types\n")[0]

    assert VAGUE.findall(by_hand) == []


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('class Thing:\n    """A thing. With more\n    to say."""', "A thing."),
        ('class Thing:\n    """A thing: `a.b`, and\n    no end"""', "A thing: `a.b`, and no end"),
        ("class Thing:\n    one: int\n    other: int = 0", "Object of an API: `one`, `other`."),
        ("# What a thing is.\n# And more.\nThing: TypeAlias = int | str", "What a thing is."),
        ("Thing: TypeAlias = int | str", "`int | str`"),
    ],
)
def test_the_meaning_is_the_first_sentence(text: str, meaning: str) -> None:
    module = Module("setpoint.things", Path("things.py"), text, ast.parse(text))

    assert meaning_of("Thing", module) == meaning
