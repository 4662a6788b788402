"""Checks the length of functions and modules, the number of parameters, and names without a meaning."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOTS = ("src", "tests", "benchmarks", "checks", "tools", "simulation", "soak", "plugins")
MAX_FUNCTION_LINES = 40
MAX_PARAMETERS = 7
MAX_MODULE_LINES = 400
NAMES_WITHOUT_AN_IDEA = frozenset({"utils", "helpers", "common", "base", "misc"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(root: Path) -> int:
    """Prints every break of a budget below `root`; 1 when there is one, else 0."""
    files = list(project_files(root))
    breaks = [broken for file in files for broken in breaks_in(file, root)]
    for broken in breaks:
        print(broken)
    if not breaks:
        print(f"budgets: {len(files)} files, all within budget")
    return 1 if breaks else 0


def project_files(root: Path) -> Iterator[Path]:
    """Every file of the project's own code, sorted; caches are left out."""
    for folder in ROOTS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def breaks_in(file: Path, root: Path) -> Iterator[str]:
    """One line of text for each budget that `file` breaks."""
    shown = file.relative_to(root)
    for name in (*shown.parent.parts, shown.stem):
        if name.strip("_") in NAMES_WITHOUT_AN_IDEA:
            yield f"{shown}:1: the name {name} says nothing: name it after its idea"
    if file.suffix == ".py":
        yield from breaks_in_source(file.read_text(encoding="utf-8"), str(shown))


def breaks_in_source(source: str, shown: str) -> Iterator[str]:
    """One line of text for each budget that the Python text `source` breaks."""
    lines = len(source.splitlines())
    if lines > MAX_MODULE_LINES:
        yield f"{shown}:1: module has {lines} lines (budget {MAX_MODULE_LINES})"
    for node in ast.walk(ast.parse(source, filename=shown)):
        if isinstance(node, Function):
            yield from breaks_in_function(node, shown)


def breaks_in_function(function: Function, shown: str) -> Iterator[str]:
    """One line of text for each budget that `function` breaks; nested functions count twice."""
    where = f"{shown}:{function.lineno}: function {function.name}"
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if lines > MAX_FUNCTION_LINES:
        yield f"{where} has {lines} lines (budget {MAX_FUNCTION_LINES})"
    parameters = len(parameter_names(function))
    if parameters > MAX_PARAMETERS:
        yield f"{where} has {parameters} parameters (budget {MAX_PARAMETERS})"


def parameter_names(function: Function) -> list[str]:
    """The names a caller fills in: without `self` and `cls`, with `*args` and `**kwargs`."""
    arguments = function.args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if positional and positional[0] in ("self", "cls"):
        del positional[0]
    variadic = [argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*positional, *(argument.arg for argument in arguments.kwonlyargs), *variadic]


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
