"""Prints how many lines of exceptions each kind has: `python -m tools.catalogue.lines`."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.catalogue.entries import facts_by_service
from tools.catalogue.exceptions import exceptions_of
from tools.catalogue.generated import OUTPUT

# What a kind may need: by rule (A), with oddities (B), and a module of code for what no line says.
CLASS_A = 5
CLASS_B = 15
HOOK = 100
VARIANTS = Path(__file__).resolve().parents[2] / "src" / "setpoint" / "kinds" / "gcp" / "generic" / "variants"
# In `choice.py`: where each class is from, and which are chosen by the name of a kind. Any other is chosen by a fact of
# the row, and serves many kinds.
_IMPORT = re.compile(r"^from [\w.]+\.variants\.(\w+) import (\w+)$", re.MULTILINE)
_BY_NAME = re.compile(r'^    "\w+": (\w+),$', re.MULTILINE)


def lines_by_kind() -> Mapping[str, int]:
    """The number of lines of each kind that is not held back."""
    held = json.loads((OUTPUT / "held.json").read_text("utf-8"))
    return {
        kind: len(lines.get(kind, {}))
        for service, rows in facts_by_service().items()
        for lines in [exceptions_of(service)]
        for kind in rows
        if kind not in held
    }


def hook_lines(folder: Path = VARIANTS) -> Mapping[str, int]:
    """The number of lines, without empty ones, of each module of code for a single kind."""
    choice = (folder / "choice.py").read_text("utf-8")
    modules = {name: module for module, name in _IMPORT.findall(choice)}
    found = sorted({modules[name] for name in _BY_NAME.findall(choice)})
    return {name: sum(map(_is_line, (folder / f"{name}.py").read_text("utf-8").splitlines())) for name in found}


def _is_line(text: str) -> bool:
    return bool(text.strip())


def main() -> int:
    """Prints the kinds with exceptions, how many are in each class, and the hooks; 1 when a kind is beyond both."""
    lines = lines_by_kind()
    for kind, count in sorted(lines.items(), key=lambda found: (-found[1], found[0])):
        if count:
            print(f"{count:4} {kind}{'' if count <= CLASS_B else '  (over the budget)'}")
    none = sum(count == 0 for count in lines.values())
    in_a = sum(0 < count <= CLASS_A for count in lines.values())
    in_b = sum(CLASS_A < count <= CLASS_B for count in lines.values())
    over = sum(count > CLASS_B for count in lines.values())
    print(
        f"{len(lines)} kinds: {none} without exceptions, {in_a} with 1 to {CLASS_A}, {in_b} to {CLASS_B}, {over} over"
    )
    hooks = hook_lines()
    for name, count in hooks.items():
        print(f"{count:4} hook {name}{'' if count <= HOOK else '  (over the budget)'}")
    long = sum(count > HOOK for count in hooks.values())
    print(f"{len(hooks)} hooks: {long} over {HOOK} lines")
    return 1 if over or long else 0


if __name__ == "__main__":
    sys.exit(main())
