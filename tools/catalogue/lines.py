"""Prints how many lines of exceptions each kind has: `python -m tools.catalogue.lines`."""

import json
import sys
from collections.abc import Mapping

from tools.catalogue.entries import facts_by_service
from tools.catalogue.exceptions import exceptions_of
from tools.catalogue.generated import OUTPUT

# What a kind may need: one that maps onto the API by rule (A), and one with oddities (B).
CLASS_A = 5
CLASS_B = 15


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


def main() -> int:
    """Prints the kinds with exceptions, and how many kinds are in each class; 1 when one is beyond both."""
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
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
