"""The plug-in is made of the public surface of setpoint, and of nothing else of it."""

import ast
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import setpoint.kind

_PROJECT = Path(__file__).parents[1]
_PUBLIC = ("setpoint", "setpoint.kind", "setpoint.testing")


def imports(file: Path) -> Iterator[tuple[str, str]]:
    """The modules of setpoint that a file imports, each with the name that it takes from there."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "setpoint")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "setpoint":
            yield from ((node.module or "", alias.name) for alias in node.names)


def test_the_source_imports_setpoint_kind_alone_and_its_tests_the_public_packages() -> None:
    source, tests = sorted((_PROJECT / "src").rglob("*.py")), sorted((_PROJECT / "tests").rglob("*.py"))

    assert {module for file in source for module, _ in imports(file)} == {"setpoint.kind"}
    assert {module for file in tests for module, _ in imports(file)} <= set(_PUBLIC)


def test_every_name_that_is_imported_is_a_public_one() -> None:
    files = sorted((_PROJECT / "src").rglob("*.py"))
    names = {name for file in files for module, name in imports(file) if module == "setpoint.kind"}

    assert names - set(setpoint.kind.__all__) == set()


def test_every_entry_point_names_the_kind_that_it_loads() -> None:
    project = tomllib.loads((_PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for entry, target in project["entry-points"]["setpoint.kinds"].items():
        module, _, name = target.partition(":")
        kind = getattr(import_module(module), name)

        assert entry == f"{kind.name}.{kind.version}.{kind.group}"
