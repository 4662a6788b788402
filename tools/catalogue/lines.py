"""Prints how many lines of exceptions each kind has: `python -m tools.catalogue.lines`."""

import json
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
HOOKS = Path(__file__).resolve().parents[2] / "src" / "setpoint" / "kinds" / "gcp" / "generic" / "odd"


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


def hook_lines(folder: Path = HOOKS) -> Mapping[str, int]:
    """The number of lines of each module of code for odd kinds; none where there is no such folder."""
    return {file.stem: len(file.read_text("utf-8").splitlines()) for file in sorted(folder.glob("*.py"))}


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
    print(f"{len(hooks)} hooks: {sum(count > HOOK for count in hooks.values())} over {HOOK} lines")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
