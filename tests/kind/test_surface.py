"""The public names of `setpoint.kind`, each with its documentation."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import setpoint.kind as surface


def test_the_surface_is_the_listed_names_and_nothing_else() -> None:
    homes = [name for names in surface._HOMES.values() for name in names.split()]

    assert sorted(homes) == sorted(surface.__all__) == list(dir(surface))
    assert len(set(homes)) == len(homes)


@pytest.mark.parametrize("name", surface.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    found = getattr(surface, name)

    if inspect.isclass(found) or inspect.isfunction(found):
        assert (inspect.getdoc(found) or "").strip(), f"{name} has no docstring"
    else:
        home = next(home for home, names in surface._HOMES.items() if name in names.split())
        is_ours = type(found).__module__.startswith("setpoint") and (inspect.getdoc(type(found)) or "").strip()
        told = _comment_above(f"setpoint.{home}", name) or is_ours
        assert told, f"{name} has no comment where it is defined"


def _comment_above(module: str, name: str) -> bool:
    """Whether the assignment of a name that is no class or function has a comment on the line above it."""
    lines = Path(str(import_module(module).__file__)).read_text(encoding="utf-8").splitlines()
    tree = ast.parse("\n".join(lines))
    for node in tree.body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            return lines[node.lineno - 2].startswith("#") or '"""' in lines[node.end_lineno or node.lineno]
    return False


def test_a_name_that_is_not_there_points_to_those_that_are() -> None:
    with pytest.raises(AttributeError, match=r"setpoint\.kind has no 'Thing': see dir\(setpoint\.kind\)"):
        _ = surface.Thing


def test_importing_the_surface_loads_nothing_until_it_is_used() -> None:
    script = (
        "import sys, setpoint.kind as k; assert 'msgspec' not in sys.modules; k.Mark; assert 'msgspec' in sys.modules"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_kind_of_an_author_needs_no_other_module_of_ours() -> None:
    for file in Path("tests/plugins/shop").rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {one for one in froms if one and one.startswith("setpoint")} <= {"setpoint", "setpoint.kind"}, file
