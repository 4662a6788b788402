"""Regenerates the catalogue, and prints what changed: `make catalogue`."""

import sys

from tools.catalogue import discovery
from tools.catalogue.entries import Rows, facts_by_service, fields_below
from tools.catalogue.exceptions import ExceptionRefused, apply_exceptions
from tools.catalogue.fields import absent_members, correct_fields
from tools.catalogue.generated import OUTPUT, changes, pinned_version, texts, write
from tools.catalogue.holds import hold_back
from tools.catalogue.methods import correct_methods, mark_set_later, read_collection
from tools.catalogue.object_rules import correct_object, find_methods, name_in_url
from tools.catalogue.references import Targets


def main() -> int:
    """Makes every file anew; 0."""
    if discovery.version() != pinned_version():
        raise SystemExit(f"{discovery.PACKAGE} {discovery.version()} is installed, {pinned_version()} is pinned")
    rows_by_service = facts_by_service()
    before = _figures(rows_by_service)
    references = Targets(kind for rows in rows_by_service.values() for kind in rows)
    for service, rows in rows_by_service.items():
        correct_rows(service, rows, references)
    old = {file.name: file.read_text("utf-8") for file in OUTPUT.glob("*.json")}
    new = texts(rows_by_service)
    write(new)
    for line in changes(old, new):
        print(line)
    print(f"before: {before}")
    print(f"after:  {_figures(rows_by_service)}; {sum(map(len, new.values())) // 1000} KB")
    return 0


def correct_rows(service: str, rows: Rows, references: Targets) -> None:
    """Corrects the rows of a service by its exceptions and by the rules."""
    collections = {kind: row["collection"] for kind, row in rows.items()}
    apply_exceptions(service, rows)
    for kind, row in rows.items():
        document = discovery.document(row["discovery"])
        if row["collection"] != collections[kind]:
            read_collection(row, document)
        find_methods(row, document)
        correct_methods(row, document)
        name_in_url(row, document)
        references.complete(row)
        correct_fields(row, document)
        mark_set_later(row, document)
        correct_object(row, document)
    apply_exceptions(service, rows)
    for row in rows.values():
        hold_back(row)
    apply_exceptions(service, rows)


def _figures(rows_by_service: dict[str, Rows]) -> str:
    rows = [row for rows in rows_by_service.values() for row in rows.values() if "hold" not in row]
    fields = [field for row in rows for _, field in fields_below(row["fields"])]
    unmatched = sum(field.get("to") == "?" for field in fields)
    absent = sum(len(list(absent_members(row, discovery.document(row["discovery"])))) for row in rows)
    return f"{len(rows)} kinds, {len(fields)} fields, {unmatched} unmatched, {absent} with a member that is not there"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ExceptionRefused as refused:
        sys.exit(str(refused))
