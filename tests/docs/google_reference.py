"""The pages of the kinds of the catalogue, made from its rows: one for each service, and the matrix of all kinds.

`python -m tests.docs.reference` writes them with the others; `python -m tests.docs.google_reference` these alone.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from setpoint.catalogue.index import held_kinds, indexed_kinds
from setpoint.catalogue.parts import ADDRESS, BESIDE, LOCAL, UNKNOWN
from setpoint.catalogue.rows import FieldFacts, KindFacts, rows_of
from setpoint.core.unstructured import GroupKind
from setpoint.kinds.gcp.generic.spec_types import NEVER_REQUIRED, has_default

FOLDER: Final = Path("docs/kinds/google")
HEAD: Final = "<!-- Written by `python -m tests.docs.reference`: edit tools/catalogue instead. -->\n"
FIELDS_HEAD: Final = "| field | type | notes |\n|---|---|---|\n"
MATRIX_HEAD: Final = (
    "| kind | version | fields | of Config Connector's | update | operations | deletion | shown by |\n"
    "|---|---|---|---|---|---|---|---|\n"
)
CONFIG_CONNECTOR: Final = Path("tools/catalogue/facts")
HELD_HEAD: Final = "| kind | why it has no row |\n|---|---|\n"
# Deeper fields are counted: a page is read by people.
_DEEPEST: Final = 3
_MOST_VALUES: Final = 8
_WORDS: Final = {"string": "text", "boolean": "true or false", "map": "text by key", "any": "anything"}
_UPDATES: Final = {
    "patch-mask-query": "PATCH with a mask",
    "patch-paths-query": "PATCH with a mask of paths",
    "patch-whole": "PATCH with the whole object",
    "patch-mask-body": "PATCH with a mask in the body",
    "put-mask-query": "PUT with a mask",
    "merge-patch": "merge PATCH",
    "put": "PUT",
    "put-request": "PUT with a request of its own",
    "per-field": "a method for each field",
    "none": "none: all fields are immutable",
}


def pages() -> dict[Path, str]:
    """Every page with its content."""
    services = sorted({one.service for one in indexed_kinds().values()})
    return {FOLDER / "README.md": _matrix(), **{FOLDER / f"{one}.md": _page(one) for one in services}}


def stale_pages(written: Mapping[Path, str]) -> list[Path]:
    """The pages of services that are no longer there."""
    return sorted(set(FOLDER.glob("*.md")) - written.keys())


def write() -> None:
    """Writes every page, and removes stale ones."""
    written = pages()
    FOLDER.mkdir(exist_ok=True)
    for path in stale_pages(written):
        path.unlink()
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")


# --- All kinds --------------------------------------------------------------------------------------------------------


INTRODUCTION: Final = """
# Google's kinds of the catalogue

{kinds} kinds of Config Connector's are made from a [catalogue](../../decisions/0029-google-by-catalogue.md) of data.
The page of a service has their fields, and `setpoint kinds KIND` shows one. Recordings of Config Connector's traffic
show {recorded} of them to be right. The others are *previews*: made by the same rules, and not compared yet.
SQLInstance, SQLDatabase, SQLUser, StorageBucket and most kinds of IAM are [written by hand](../README.md).

Of the {total} fields that Config Connector has in the specs of these kinds, {matched} can be set here. The others have
no member of Google's API that is known. The matrix says for each kind how many fields it has here, and how many of
Config Connector's are among those that can be set.

In an embedded store each can be used at once. A cluster needs the definitions of those that it uses: see
[run on Kubernetes](../../how-to/run-on-kubernetes.md#kinds-of-the-catalogue). To add one:
[add a Google kind](../../how-to/add-a-google-kind.md).

"""
HELD: Final = """
## Held back

These kinds of Config Connector's are known, and have no row of the catalogue, because it could not be right yet. One
that is neither here nor above nor [written by hand](../README.md) has no facts in `tools/catalogue/facts`:
[add it](../../how-to/add-a-google-kind.md).

"""


def _matrix() -> str:
    rows = {(row.group, row.kind): row for service in _services() for row in rows_of(service).values()}
    ordered = sorted(rows, key=lambda name: name[1])
    recorded = sum(one.is_recorded for one in indexed_kinds().values())
    held = {kind: why for kind, why in held_kinds().items() if "written by hand" not in why}
    compared = [_compared(row) for row in rows.values()]
    sums = {"matched": sum(one for one, _ in compared), "total": sum(one for _, one in compared)}
    lines = [
        HEAD + INTRODUCTION.format(kinds=len(rows), recorded=recorded, **sums) + MATRIX_HEAD,
        *(_matrix_row(rows[name], name) for name in ordered),
        HELD + HELD_HEAD,
        *(f"| {kind} | {why} |\n" for kind, why in sorted(held.items())),
    ]
    return "".join(lines)


def _services() -> list[str]:
    return sorted({one.service for one in indexed_kinds().values()})


def _matrix_row(row: KindFacts, name: GroupKind) -> str:
    known = indexed_kinds()[name]
    link = f"[{row.kind}]({known.service}.md#{row.kind.lower()})"
    cells = (
        link,
        row.version,
        str(len(list(_fields(row.fields, "")))),
        "{} of {}".format(*_compared(row)),
        _UPDATES[row.update_style],
        _operations(row),
        _deletion(row),
    )
    return f"| {' | '.join(cells)} | {_shown_by(known.is_recorded)} |\n"


def _compared(row: KindFacts) -> tuple[int, int]:
    """How many of the fields that Config Connector has can be set here, and how many it has."""
    theirs = set(_their_fields(_config_connector()[row.kind]["fields"], ""))
    return len(theirs & set(_settable(row.fields, ""))), len(theirs)


@cache
def _config_connector() -> dict[str, Any]:
    """The facts of every kind, by its name."""
    found = (json.loads(path.read_text("utf-8")) for path in sorted(CONFIG_CONNECTOR.glob("*.json")))
    return {kind: facts for service in found for kind, facts in service.items()}


def _their_fields(fields: Mapping[str, Any], before: str) -> Iterator[str]:
    for name, facts in fields.items():
        yield f"{before}{name}"
        yield from _their_fields(facts.get("fields", {}), f"{before}{name}.")


def _settable(fields: Mapping[str, FieldFacts], before: str) -> Iterator[str]:
    for name, facts in fields.items():
        if facts.to != UNKNOWN:
            yield f"{before}{name}"
            yield from _settable(facts.fields, f"{before}{name}.")


def _shown_by(is_recorded: bool) -> str:
    return "recordings" if is_recorded else "preview"


def _operations(row: KindFacts) -> str:
    return ", ".join(row.operations) or "none"


def _deletion(row: KindFacts) -> str:
    return "deleted" if "delete" in row.methods else "left in place"


# --- One service ------------------------------------------------------------------------------------------------------


def _page(service: str) -> str:
    rows = [row for _, row in sorted(rows_of(service).items())]
    return f"{HEAD}\n# {rows[0].host}\n\n" + "\n".join(_kind(row) for row in rows)


def _kind(row: KindFacts) -> str:
    known = indexed_kinds()[row.group, row.kind]
    facts = (
        f"`{row.group}/{row.version}`; shown by: {_shown_by(known.is_recorded)}.",
        f"Object: `{row.name}`. Update: {_UPDATES[row.update_style]}. Operations: {_operations(row)}.",
        f"With the resource, the object is {_deletion(row)}.",
    )
    table = "".join(_field_row(path, facts) for path, facts in _shown(row.fields, "", 1))
    return f"## {row.kind}\n\n" + "\n\n".join(facts) + f"\n\n{FIELDS_HEAD}{table}"


def _fields(fields: Mapping[str, FieldFacts], before: str) -> Iterator[str]:
    for name, facts in fields.items():
        yield f"{before}{name}"
        yield from _fields(facts.fields, f"{before}{name}.")


def _shown(fields: Mapping[str, FieldFacts], before: str, depth: int) -> Iterator[tuple[str, FieldFacts]]:
    for name, facts in fields.items():
        path = f"{before}{name}{'[]' if facts.type == 'list' and facts.fields else ''}"
        yield path, facts
        if depth < _DEEPEST:
            yield from _shown(facts.fields, f"{path}.", depth + 1)


def _field_row(path: str, facts: FieldFacts) -> str:
    deeper = len(list(_fields(facts.fields, ""))) if path.count(".") == _DEEPEST - 1 else 0
    notes = [*_notes(path, facts), *([f"{deeper} more fields"] if deeper else [])]
    return f"| `{path}` | {_type(facts)} | {', '.join(notes)} |\n".replace("|  |", "| |")


def _type(facts: FieldFacts) -> str:
    if facts.ref is not None:
        kinds = " or ".join(facts.ref.kinds)
        return f"reference{f' to {kinds}' if kinds else ''}"
    if facts.secret:
        return "secret value"
    if facts.one_of_refs:
        return "one of references"
    if facts.type == "list":
        return "list of objects" if facts.fields else f"list of {_WORDS.get(facts.items or 'string', facts.items)}"
    if facts.enum:
        more = f" and {len(facts.enum) - _MOST_VALUES} more" if len(facts.enum) > _MOST_VALUES else ""
        return ", ".join(f"`{value}`" for value in facts.enum[:_MOST_VALUES]) + more
    return _WORDS.get(facts.type, facts.type)


def _notes(path: str, facts: FieldFacts) -> Iterator[str]:
    name = path.rpartition(".")[2].removesuffix("[]")
    if facts.required and name not in NEVER_REQUIRED:
        yield "required"
    if facts.immutable or facts.to in ADDRESS:
        yield "immutable"
    if facts.output_only:
        yield "set by the service"
    if has_default(facts):
        yield f"default `{msgspec.json.encode(facts.default).decode()}`"
    if facts.to and facts.to != name:
        yield _member_note(facts)


def _member_note(facts: FieldFacts) -> str:
    others = {
        **dict.fromkeys(ADDRESS, "part of the address"),
        UNKNOWN: f"cannot be set: {facts.reason or 'no member is known'}",
        LOCAL: "not sent",
        BESIDE: "its members stand beside it",
    }
    return others.get(facts.to, f"member `{facts.to}`")


if __name__ == "__main__":
    write()
