"""Cases of trustee-operator: where they are, and what of them can be compared."""

import json
import os
from pathlib import Path as File
from typing import Any, Final

from setpoint.core.merge.threeway import EditableFields
from setpoint.core.values.paths import Path, Selector

Case = dict[str, Any]

ROOT: Final = File(__file__).resolve().parents[3]
BESIDE: Final = ROOT.parent / "shared" / "facts" / "trustee_merge_cases.json"
NAMED: Final = os.environ.get("SETPOINT_TRUSTEE_CASES", "")
WHERE: Final = File(NAMED) if NAMED else BESIDE


def cases() -> list[Case]:
    """All cases; none without a file beside the project. A file named by the environment has to exist."""
    if not NAMED and not BESIDE.exists():
        return []
    found: list[Case] = json.loads(WHERE.read_text("utf-8"))
    return found


def full(value: Any, name: str = "") -> Any:
    """`value` without what is empty; a mountPath of "" and a variable of "" say something."""
    if isinstance(value, dict):
        members = {key: member if name == "KbsEnvVars" else full(member, key) for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not None} or None
    if isinstance(value, list):
        return [full(element) for element in value] or None
    return None if value == "" and name != "mountPath" else value


def same_places(reported: tuple[Path, ...], expected: list[str], table: EditableFields) -> bool:
    """Whether both are the same paths: a field may be named by its object, an entry by its key."""
    places = [Path.parse(text) for text in expected]
    return len(places) == len(reported) and all(any(_is_at(one, place, table) for one in reported) for place in places)


def _is_at(reported: Path, expected: Path, table: EditableFields) -> bool:
    field = next(path for path in table if path.covers(reported))
    if expected.covers(reported):
        return expected.covers(field) or expected == reported
    entry = reported.steps[-1]
    name = entry.pairs[0][1] if isinstance(entry, Selector) else entry
    return expected.steps[-1] in (entry, name) and expected.steps[0] == reported.steps[0]
