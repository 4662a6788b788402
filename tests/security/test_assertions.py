"""No `assert` decides about input: it is refused by an error of ours, also by `python -O`, which has no assertions."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security import bad_inputs

ROOT = Path("src/setpoint")


def test_wrong_input_is_refused_in_the_same_way_without_assertions(capsys: pytest.CaptureFixture[str]) -> None:
    folders = os.pathsep.join(("src", ".", os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-O", "-m", "tests.security.bad_inputs"]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": folders}
    )

    bad_inputs.main()
    printed = capsys.readouterr().out.splitlines()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == printed
    assert len(printed) > 1_000
    assert [line for line in printed if "UNEXPECTED" in line] == []


def assertions() -> Iterator[tuple[str, ast.expr]]:
    """Every assertion in the source, with its place; those of the package for tests are tests."""
    for file in sorted(set(ROOT.rglob("*.py")) - set((ROOT / "testing").rglob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assert):
                yield f"{file}:{node.lineno}", node.test


def narrows(test: ast.expr) -> bool:
    """Whether a test says no more than a type checker wants to hear: `isinstance`, `is None`, and their opposites."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return narrows(operand)
        case ast.BoolOp(values=values):
            return all(map(narrows, values))
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(None) | ast.Name(id="MISSING")]):
            return True
        case _:
            return False


def test_assertions_narrow_types_and_nothing_else() -> None:
    found = list(assertions())

    assert len(found) > 20
    assert [place for place, test in found if not narrows(test)] == [], "raise an error of ours: `python -O` has none"


@pytest.mark.parametrize("folder", ["terraform/rpc", "terraform/cty", "runtime/admin_api.py", "clients/kubernetes"])
def test_what_decodes_messages_of_others_has_no_assertion(folder: str) -> None:
    assert [place for place, _ in assertions() if place.startswith(str(ROOT / folder))] == []


@pytest.mark.parametrize("text", ["assert value", "assert len(x) == 1", "assert x in y", "assert x.fullmatch(y)"])
def test_an_assertion_about_a_value_would_be_found(text: str) -> None:
    (statement,) = ast.parse(text).body

    assert isinstance(statement, ast.Assert)
    assert not narrows(statement.test)
