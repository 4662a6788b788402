"""The threat model names tests that exist, one at least in each line."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
_TEST: Final = re.compile(r"`((?:[\w/]+/)?test_\w+\.py)::(\w+)`")


def _lines() -> Iterator[str]:
    """The lines of the table of attacks."""
    _, _, table = (ROOT / "docs/security.md").read_text(encoding="utf-8").partition("## What each could try")
    rows = [line for line in table.splitlines() if line.startswith("|")]
    yield from rows[2:]


@cache
def _tests_in(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("line", [*_lines()])
def test_every_line_names_its_tests(line: str) -> None:
    found = _TEST.findall(line)
    assert found, f"this line names no test: {line}"
    for file, name in found:
        path = ROOT / (file if "/" in file else f"tests/security/{file}")
        assert path.exists(), f"{file} does not exist"
        assert name in _tests_in(path), f"{file} has no {name}"


def test_there_are_lines() -> None:
    assert len([*_lines()]) > 20
