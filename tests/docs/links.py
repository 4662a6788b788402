"""Links from docs to definitions in the source: [`name`](../src/setpoint/….py#L42).

`python -m tests.docs.links` corrects lines, and files where a definition has moved and its name is unique.
"""

import ast
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path("src/setpoint")
LINK = re.compile(r"\[`(?P<name>[\w.]+)`\]\((?P<file>[^)#]+\.py)#L(?P<line>\d+)\)")


class Link(NamedTuple):
    """A link in a page, and the source file that it leads to."""

    page: Path
    name: str
    file: Path
    line: int


def pages() -> list[Path]:
    """The pages that link to definitions."""
    return [Path("CONTRIBUTING.md"), *sorted(Path("docs").rglob("*.md"))]


def links_in(page: Path) -> Iterator[Link]:
    """The links to definitions in a page."""
    for found in LINK.finditer(page.read_text(encoding="utf-8")):
        file = Path(os.path.normpath(page.parent / found["file"]))
        yield Link(page, found["name"], file, int(found["line"]))


@cache
def definitions(file: Path) -> dict[str, int]:
    """The line of every function, class and method of a module, by its name: `Class.method`."""
    found: dict[str, int] = {}

    def add(body: list[ast.stmt], prefix: str) -> None:
        for one in body:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[prefix + one.name] = one.lineno
                if isinstance(one, ast.ClassDef):
                    add(one.body, f"{prefix}{one.name}.")

    if file.is_file():
        add(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return found


def corrected(page: Path) -> str:
    """The text of the page with true lines; a name that is not defined where it should be is searched everywhere."""

    def link(found: re.Match[str]) -> str:
        name, file = found["name"], Path(os.path.normpath(page.parent / found["file"]))
        if name not in definitions(file):
            candidates = _files_by_name()[name]
            if len(candidates) != 1:
                return found[0]
            (file,) = candidates
        return f"[`{name}`]({os.path.relpath(file, page.parent)}#L{definitions(file)[name]})"

    return LINK.sub(link, page.read_text(encoding="utf-8"))


@cache
def _files_by_name() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(SOURCE.rglob("*.py")):
        for name in definitions(file):
            found[name].append(file)
    return found


def main() -> int:
    """Corrects all pages; 1 when a link is left whose name is not defined."""
    lost = 0
    for page in pages():
        text = corrected(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
        for one in links_in(page):
            if one.name not in definitions(one.file):
                sys.stderr.write(f"{page}: {one.name} is not defined in {one.file}: name what is called now\n")
                lost = 1
    return lost


if __name__ == "__main__":
    sys.exit(main())
