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
# Examples of what is wrong already, and of a kind that is not there before the steps of its page are taken.
_LEFT_OUT: Final = (ROOT / "docs/errors.md", ROOT / "docs/how-to/add-a-google-kind.md")


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
        if page not in _LEFT_OUT:
            found |= {f"{page.relative_to(ROOT)} {number}": text for number, text in enumerate(blocks, 1)}
    return found


class WrongAnnotation(NamedTuple):
    """A row about annotations: the line, and words, of the error or the warning that it is to give."""

    base: str
    old: str
    new: str
    line: int
    words: str
    is_refused: bool = True


_BUCKET: Final = "docs/kinds/storage-bucket.md 1"
_PROJECT: Final = "    cnrm.cloud.google.com/project-id: demo"
# An annotation that is similar to a known one is refused, and any other one that is not known gives a warning.
ANNOTATION_ROWS: Final[Sequence[WrongAnnotation]] = tuple(
    WrongAnnotation(_BUCKET, _PROJECT, f"{_PROJECT}\n    {new}", 7, words, is_refused)
    for new, words, is_refused in (
        ('cnrm.cloud.google.com/ignore-unspecified-field: "true"', "ignore-unspecified-fields", True),
        ('cnrm.cloud.google.com/ignore-unspecifed-fields: "true"', "ignore-unspecified-fields", True),
        ("cnrm.cloud.google.com/deletion-polcy: abandon", "deletion-policy", True),
        ("cnrm.cloud.google.com/deletionPolicy: abandon", "deletion-policy", True),
        ('cnrm.cloud.google.com/forcedestroy: "true"', "force-destroy", True),
        ("cnrm.cloud.google.com/unmanged: spec.location", "unmanaged", True),
        ("cnrm.cloud.google.com/default-to-gcp-field: spec.website", "default-to-gcp-fields", True),
        ("cnrm.cloud.google.com/projectid: demo", "project-id", True),
        ('cnrm.cloud.google.com/reconcile-interval-in-second: "600"', "reconcile-interval-in-seconds", True),
        ("setpoint.dev/managment: observe", "setpoint.dev/management", True),
        ("setpoint.dev/dependson: StorageBucket/other", "setpoint.dev/depends-on", True),
        ("setpont.dev/management: observe", "setpoint.dev/management", True),
        ("cnrm.cloud.gogle.com/project-id: other", "cnrm.cloud.google.com/project-id", True),
        ("setpoint.dev/colour: blue", "setpoint.dev/colour", False),
        ("cnrm.cloud.google.com/colour: blue", "cnrm.cloud.google.com/colour", False),
        ("setpoint.dev/management: observ", "setpoint.dev/management", True),
        ("setpoint.dev/management: true", "setpoint.dev/management", True),
        ("setpoint.dev/depends-on: StorageBuckt/other", "StorageBucket", True),
        ("setpoint.dev/depends-on: other", "KIND/NAME", True),
        ("cnrm.cloud.google.com/unmanaged: spec.loction", "spec.location", True),
        ('cnrm.cloud.google.com/ignore-unspecified-fields: "yes"', "ignore-unspecified-fields", True),
        ("cnrm.cloud.google.com/reconcile-interval-in-seconds: 10m", "reconcile-interval-in-seconds", True),
    )
)
