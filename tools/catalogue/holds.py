"""Why a row cannot be right yet: it is listed then, and not written."""

from collections.abc import Iterator

from tools.catalogue.entries import RowEntry, fields_below
from tools.catalogue.matching import UNKNOWN

# So many fields without a member of the API mean that the facts name another object.
_MOST_UNKNOWN = 0.3
_MANY_FIELDS = 10


def hold_back(row: RowEntry) -> None:
    """Notes the first reason why the row cannot be right, if there is one."""
    if "hold" not in row:
        reason = next(_reasons(row), "")
        if reason:
            row["hold"] = reason


def _reasons_of_made_id(row: RowEntry) -> Iterator[str]:
    """Why an object whose id the service makes could not be found again after a kill."""
    if "list" not in row["methods"]:
        yield "the service makes its id, and has no list in which it could be found again"
    if not row.get("labels") and not row["id"].get("key"):
        yield "the service makes its id, and neither a label nor a member that is known finds it again"


def _reasons(row: RowEntry) -> Iterator[str]:
    if "create" not in row["methods"]:
        yield "no method of the API creates it"
    if "get" not in row["methods"]:
        yield "no method of the API reads it"
    if "id" not in row:
        yield "it is not known where its id goes"
    for name, field in row["fields"].items():
        if field.get("required") and field.get("to") == UNKNOWN:
            yield f"spec.{name} is required, and is no member of the API that is known"
    paths = [field for _, field in fields_below(row["fields"])]
    unknown = sum(field.get("to") == UNKNOWN for field in paths)
    if len(paths) >= _MANY_FIELDS and unknown > _MOST_UNKNOWN * len(paths):
        yield f"of its {len(paths)} fields, {unknown} are no members of the API that are known"
    if row.get("id", {}).get("in") == "service":
        yield from _reasons_of_made_id(row)
