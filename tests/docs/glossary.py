"""The types in the glossary: a row for each public type of the source, with its docstring as the meaning.

`python -m tests.docs.glossary` rewrites the tables of types; the rest of the page is written by hand.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

from checks.structure import Module, modules_below, type_names

PAGE: Final = Path("docs/glossary.md")
SOURCE: Final = Path("src")
TYPES_HEADING: Final = "## Types\n"
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?=\s|$)", re.DOTALL)


def with_types(page: str, modules: Sequence[Module]) -> str:
    """The page with a table of types for each part of the package."""
    before, heading, _ = page.partition(TYPES_HEADING)
    assert heading, f"{PAGE} has no heading {TYPES_HEADING!r}"
    return f"{before}{heading}{''.join(_sections(modules))}"


def _sections(modules: Sequence[Module]) -> Iterator[str]:
    for part, some in groupby(modules, key=_part):
        rows = sorted((row for module in some for row in _rows(module)), key=str.casefold)
        if rows:
            yield f"\n### {part}\n\n| type | meaning | where |\n|---|---|---|\n" + "".join(f"{row}\n" for row in rows)


def _part(module: Module) -> str:
    """`core`, `kinds`, …: the first folder, or the package itself for its own modules."""
    names = module.name.split(".")
    return names[1] if len(names) > 2 or (module.is_package and len(names) > 1) else "setpoint"


def _rows(module: Module) -> Iterator[str]:
    where = module.file.relative_to(SOURCE / "setpoint").as_posix()
    for name in type_names(module.tree):
        yield f"| `{name}` | {_escaped(meaning_of(name, module))} | [{where}](../src/setpoint/{where}) |"


def meaning_of(name: str, module: Module) -> str:
    """The first sentence of a type's docstring, or of the comment above an alias; else what it consists of."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _first_sentence(ast.get_docstring(node) or "") or _fields_of(node)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            assert node.value is not None
            return _first_sentence(_comment_above(node.lineno, module.text)) or f"`{ast.unparse(node.value)}`"
    raise AssertionError(f"{module.name} has no type {name}")


def _fields_of(node: ast.ClassDef) -> str:
    """The fields of an object that is as its API has it, and has no docstring."""
    names = [one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
    return f"Object of an API: {', '.join(f'`{name}`' for name in names)}."


def _comment_above(line: int, text: str) -> str:
    lines = text.splitlines()[: line - 1]
    comment: list[str] = []
    while lines and lines[-1].startswith("# ") and not lines[-1].startswith("# ---"):
        comment.insert(0, lines.pop().removeprefix("# "))
    return " ".join(comment)


def _first_sentence(text: str) -> str:
    found = _SENTENCE.match(text)
    return " ".join((found[1] if found else text).split())


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


@cache
def source_modules() -> list[Module]:
    """Every module of the source, the package's own first, then by folder."""
    return sorted(modules_below(SOURCE), key=lambda one: (_part(one) != "setpoint", _part(one), one.name))


if __name__ == "__main__":
    PAGE.write_text(with_types(PAGE.read_text(encoding="utf-8"), source_modules()), encoding="utf-8")
