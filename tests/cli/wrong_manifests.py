"""A table of wrong manifests: mutations of the examples in the documentation, and what is to come of each.

A row of `wrong_manifests.jsonl` names an example by its page and its number there, the text that is replaced once, the
text that takes its place, and either all errors, with file and line (`refused`), or, where the mutated manifest means
what it says, words of its plan (`meant`).
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = Path(__file__).with_suffix(".jsonl")
_FENCED: Final = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Examples of what is wrong already.
_ERRORS: Final = ROOT / "docs/errors.md"


class WrongManifest(NamedTuple):
    """A row of the table."""

    base: str
    old: str
    new: str
    refused: Sequence[str] = ()
    meant: str = ""

    @property
    def text(self) -> str:
        """The mutated manifest."""
        base = examples()[self.base]
        assert self.old in base, f"{self.base} has no {self.old!r} any more: change the row with the page"
        return base.replace(self.old, self.new, 1)


def rows_of(table: Path) -> tuple[WrongManifest, ...]:
    """The rows of a table."""
    lines: Sequence[Mapping[str, Any]] = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    return tuple(WrongManifest(**line) for line in lines)


@cache
def examples() -> Mapping[str, str]:
    """Every example in the documentation that is a file of manifests, by its page and its number there."""
    found: dict[str, str] = {}
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        blocks = [one for one in _FENCED.findall(page.read_text(encoding="utf-8")) if one.startswith("apiVersion:")]
        if page != _ERRORS:
            found |= {f"{page.relative_to(ROOT)} {number}": text for number, text in enumerate(blocks, 1)}
    return found
