"""The kinds that recordings of Config Connector's traffic show to be right: `recorded.txt`, a name a line.

A kind that is not in it is a preview. A line stays: what a recording has shown once is held against it from then on.
`python -m tools.catalogue.recorded REPORT` adds the kinds of the recordings that pass: REPORT is the file that
`replay.py FOLDER... --json REPORT` wrote. `make catalogue` takes them over.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

RECORDED: Final = Path(__file__).parent / "recorded.txt"


def recorded_kinds() -> frozenset[str]:
    """The kinds that a recording shows to be right."""
    return frozenset(RECORDED.read_text("utf-8").split())


def shown_kinds(report: Any) -> Iterator[str]:  # noqa: ANN401 - JSON of another program
    """The kinds whose writes are all as recorded, in recordings that pass."""
    for recording in report["fixtures"]:
        if recording["verdict"] == "passed":
            yield from (kind for kind, one in recording["writes"].items() if one["equal"] == one["expected"] > 0)


def add_recorded(kinds: set[str]) -> list[str]:
    """Adds kinds to the list; those that are new."""
    before = recorded_kinds()
    RECORDED.write_text("".join(f"{kind}\n" for kind in sorted(before | kinds)), "utf-8")
    return sorted(kinds - before)


if __name__ == "__main__":
    print("\n".join(add_recorded(set(shown_kinds(json.loads(Path(sys.argv[1]).read_text("utf-8")))))))
