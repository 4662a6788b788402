"""Rules for an object as a whole: what the service sets, which of its states mean that it was deleted, and whether a
change of it is an operation."""

import re
from typing import Final

from tools.catalogue.discovery import Document
from tools.catalogue.entries import Json, RowEntry

# Older documents say so at the beginning of the text, or at its end.
_READ_ONLY: Final = re.compile(r"\W*read-only\b|.*\bread-only\W*$", re.IGNORECASE | re.DOTALL)
_STATES: Final = ("state", "lifecycleState")
_DELETED: Final = ("DELETED", "DELETE_REQUESTED", "DELETE_IN_PROGRESS")


def correct_object(row: RowEntry, document: Document) -> None:
    """Corrects what a row says about its object."""
    _name_outputs(row, document)
    _name_deleted_states(row, document)
    _wait_for_updates(row)


def _wait_for_updates(row: RowEntry) -> None:
    """Methods that change an object and answer with an operation: it is of the sort that a creation is."""
    names, others = row.get("per_field_methods", ()), row.get("other_methods", {})
    methods = [
        *(row["methods"].get(name, {}) for name in ("patch", "update")),
        *(others.get(name, {}) for name in names),
    ]
    operations = row.get("operations", {})
    if "create" in operations and any(method.get("response", "").endswith("Operation") for method in methods):
        operations.setdefault("update", operations["create"])


def _name_outputs(row: RowEntry, document: Document) -> None:
    """Members that are read-only by their text, and that no field is."""
    own = {field.get("to") or name for name, field in row["fields"].items()}
    known = row.setdefault("output_only", [])
    for name, schema in document.members(document.schema(row["schema"])).items():
        if name not in {*own, *known} and _READ_ONLY.match(schema.get("description", "")):
            known.append(name)


def _name_deleted_states(row: RowEntry, document: Document) -> None:
    """Where a deletion can be undone, the object stays for a while, in a state that says so: it counts as absent."""
    if "undelete" not in document.collection(row["collection"]):
        return
    members = document.members(document.schema(row["schema"]))
    for name in _STATES:
        found: list[Json] = [word for word in members.get(name, {}).get("enum", ()) if word in _DELETED]
        if found:
            row.setdefault("absent", {}).setdefault(name, found)
