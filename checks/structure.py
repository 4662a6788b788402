"""Checks the structure of the source tree: few modules, small folders, no homonyms, actors named by their role."""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = "src"
# Fragments are the smell, not size: the package may grow, its modules may not shrink.
MEAN_MODULE_LINES = 150
FEW_MODULES = 20
MAX_FOLDER_MODULES = 15
MAX_SMALL_MODULES = 10
MAX_VAGUE_ACTORS = 20
SMALL_MODULE_LINES = 40
# The command line is a client of the library: what opens stores and engines is not for it.
FRONT_END = "setpoint.cli."
OPENERS = {
    "setpoint.app": {"StoreAccess", "open_app", "open_engine", "open_engine_read_only"},
    "setpoint.app.engine": {"open_app", "open_engine", "open_engine_read_only"},
    "setpoint.migration": {"finish_migration", "preview_migration", "stop_config_connector", "take_over"},
    "setpoint.preview": {"make_recording", "open_preview", "open_recorded"},
}
# Those that open some by themselves, and why.
OPENS_ITSELF = {
    "setpoint.cli.commands.migrate": "reads and writes the store of Config Connector, beside that of the session",
    "setpoint.cli.commands.transfer": "moves state from one store to another, which no call of a session may write",
}
VAGUE_ACTORS = re.compile(r"\b(nobody|somebody|whoever|anybody|everybody)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the package, parsed."""

    name: str
    file: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__.py` of a folder."""
        return self.file.name == "__init__.py"

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return len(self.text.splitlines())


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure with its limit, and the places that it counts."""

    what: str
    figure: int
    limit: int
    places: Sequence[str] = ()

    @property
    def is_broken(self) -> bool:
        """Whether the figure is over the limit."""
        return self.figure > self.limit

    def __str__(self) -> str:
        result = "FAILED" if self.is_broken else "ok"
        return f"structure: {self.what}: {self.figure} (at most {self.limit}) {result}"


def main(root: Path) -> int:
    """Prints every measure of the source below `root`, and the places of those over their limit; 1 if there is one."""
    measures = measures_of(list(modules_below(root / SOURCE)))
    for measure in measures:
        print(measure)
        if measure.is_broken:
            print("\n".join(f"  {place}" for place in measure.places))
    return 1 if any(measure.is_broken for measure in measures) else 0


def modules_below(source: Path) -> Iterator[Module]:
    """Every module below `source`, sorted by file."""
    for file in sorted(source.rglob("*.py")):
        if "__pycache__" not in file.parts:
            parts = file.relative_to(source).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = file.read_text(encoding="utf-8")
            yield Module(name, file, text, ast.parse(text, filename=str(file)))


def measures_of(modules: Sequence[Module]) -> tuple[Measure, ...]:
    """Every figure that `make check` demands."""
    folders = Counter(str(module.file.parent) for module in modules if not module.is_package)
    crowded = [f"{folder}: {count}" for folder, count in sorted(folders.items()) if count > MAX_FOLDER_MODULES]
    small = small_modules_with_one_importer(modules)
    homonyms = [
        f"{name}: {', '.join(found)}" for name, found in sorted(public_types(modules).items()) if len(found) > 1
    ]
    vague_lines = list(vague_actors(modules))
    opening = list(openers_in_front_end(modules))
    undocumented = [str(module.file) for module in modules if module.is_package and not ast.get_docstring(module.tree)]
    most = max(FEW_MODULES, sum(module.lines for module in modules) // MEAN_MODULE_LINES)
    return (
        Measure(f"modules in src, one for every {MEAN_MODULE_LINES} lines", len(modules), most),
        Measure(f"folders with more than {MAX_FOLDER_MODULES} modules", len(crowded), 0, crowded),
        Measure("packages whose __init__ does not say what lives there", len(undocumented), 0, undocumented),
        Measure(f"modules under {SMALL_MODULE_LINES} lines with one importer", len(small), MAX_SMALL_MODULES, small),
        Measure("public type names used twice", len(homonyms), 0, homonyms),
        Measure("modules of the command line that open the engine themselves", len(opening), 0, opening),
        Measure(
            "nobody, somebody, whoever, anybody, everybody in src", len(vague_lines), MAX_VAGUE_ACTORS, vague_lines
        ),
    )


def small_modules_with_one_importer(modules: Sequence[Module]) -> list[str]:
    """The small modules that a single other module imports: fragments of it."""
    importers: dict[str, set[str]] = defaultdict(set)
    known = {module.name for module in modules}
    for module in modules:
        for imported in imports_of(module.tree) & known:
            importers[imported].add(module.name)
    return [
        f"{module.file}: {module.lines} lines, imported by {', '.join(importers[module.name])}"
        for module in modules
        if not module.is_package and module.lines < SMALL_MODULE_LINES and len(importers[module.name]) == 1
    ]


def imports_of(tree: ast.Module) -> set[str]:
    """The dotted names that the text imports, anywhere in it; `from a import b` counts as a and as a.b."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def public_types(modules: Sequence[Module]) -> Mapping[str, list[str]]:
    """The modules that define each public class or type alias, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in type_names(module.tree):
            found[name].append(module.name)
    return found


def type_names(tree: ast.Module) -> Iterator[str]:
    """The public classes and annotated type aliases at the top of a module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            is_alias = isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
            if is_alias and not node.target.id.startswith("_"):
                yield node.target.id


def openers_in_front_end(modules: Sequence[Module]) -> Iterator[str]:
    """The modules of the command line that import what opens stores and engines, without a reason to."""
    for module in modules:
        if module.name.startswith(FRONT_END) and module.name not in OPENS_ITSELF:
            found = sorted(imports_of(module.tree) & {f"{home}.{name}" for home in OPENERS for name in OPENERS[home]})
            if found:
                yield f"{module.file}: {', '.join(found)}"


def vague_actors(modules: Sequence[Module]) -> Iterator[str]:
    """Every line that names an actor by one of `VAGUE_ACTORS` instead of by its role."""
    for module in modules:
        for number, line in enumerate(module.text.splitlines(), start=1):
            for _ in VAGUE_ACTORS.findall(line):
                yield f"{module.file}:{number}: {line.strip()[:100]}"


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
