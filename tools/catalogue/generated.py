"""The generated files: which keys they keep, how they are written, and of which inputs they were made.

`generated.json` holds the hash of each input and output, so that a test sees, without the discovery documents, that
the one was changed and the other was not made anew.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from tools.catalogue.compaction import compact, put_shared_back
from tools.catalogue.entries import FIELD_KEYS, ROOT, ROW_KEYS, FieldEntry, Json, MethodEntry, RowEntry, Rows
from tools.catalogue.recorded import RECORDED, recorded_kinds

OUTPUT: Final = ROOT / "src" / "setpoint" / "catalogue" / "google"
RECORD: Final = Path(__file__).parent / "generated.json"
REQUIREMENTS: Final = ROOT / "requirements" / "catalogue.txt"
_METHOD_KEYS: Final = ("verb", "path", "query", "wrap", "mask", "items", "sends", "field", "sends_as", "stopped")
# Parameters of queries that serve readers of a page or of a part, never a write.
_UNUSED_PARAMETERS: Final = frozenset(
    {
        "pageSize",
        "pageToken",
        "maxResults",
        "orderBy",
        "filter",
        "view",
        "returnPartialSuccess",
        "fields",
        "prettyPrint",
    }
)
_OF_POLICIES: Final = frozenset({"getIamPolicy", "setIamPolicy"})


def texts(rows_by_service: Mapping[str, Rows]) -> dict[str, str]:
    """The text of each generated file, by name; a service none of whose kinds is written has none.

    `index.json` has the kinds of each service with group and version, and whether a recording shows them to be right;
    `held.json` has those that are not written, and why.
    """
    written = {
        service: {kind: written_row(row) for kind, row in sorted(rows.items()) if "hold" not in row}
        for service, rows in sorted(rows_by_service.items())
    }
    written = {service: rows for service, rows in written.items() if rows}
    index = {service: {kind: _indexed(row) for kind, row in rows.items()} for service, rows in written.items()}
    for row in (row for rows in written.values() for row in rows.values()):
        compact(row)
    files = {f"{service}.json": _text(rows) for service, rows in written.items()}
    held = {
        kind: row["hold"] for rows in rows_by_service.values() for kind, row in sorted(rows.items()) if "hold" in row
    }
    return {**files, "index.json": _text(index), "held.json": _text(held)}


def _indexed(row: Mapping[str, Json]) -> dict[str, Json]:
    recorded: dict[str, Json] = {"recorded": True} if row["kind"] in recorded_kinds() else {}
    return {"group": row["group"], "version": row["version"], **recorded}


def _text(objects: Mapping[str, object]) -> str:
    """An object with one line for each member, so that a change of one kind is a change of one line."""
    lines = [f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}" for name, value in objects.items()]
    return "{" + ",\n".join(lines) + "}\n"


def written_row(row: RowEntry) -> dict[str, Json]:
    """What the product reads of a row."""
    kept = dict(row)
    switched = (name for field in row["fields"].values() for name in field.get("toggle", {}).values())
    other = row.get("other_methods", {})
    creating = (name for name in row.get("create_methods", {}).values() if other.get(name, {}).get("wrap"))
    used = {*row.get("per_field_methods", ()), *switched, *creating, *_OF_POLICIES}
    kept["methods"] = {name: written_method(method) for name, method in row["methods"].items()}
    kept["other_methods"] = {name: written_method(other[name]) for name in sorted(used & set(other))}
    kept["fields"] = {name: written_field(field) for name, field in row["fields"].items()}
    return _pruned(kept, ROW_KEYS, required=("prefix", "fields", "methods"))


def written_method(method: MethodEntry) -> dict[str, Json]:
    """What the product reads of a method."""
    query = [name for name in method.get("query", ()) if name not in _UNUSED_PARAMETERS]
    return _pruned({**method, "query": query}, _METHOD_KEYS, required=("verb", "path"))


def written_field(field: FieldEntry) -> dict[str, Json]:
    """What the product reads of a field."""
    fields = {name: written_field(below) for name, below in field.get("fields", {}).items()}
    return _pruned({**field, "fields": fields}, FIELD_KEYS, required=("type", "default"))


def _pruned(facts: Mapping[str, object], keys: tuple[str, ...], *, required: tuple[str, ...]) -> dict[str, Json]:
    kept = {key: facts[key] for key in keys if key in facts and (facts[key] or key in required)}
    return cast(dict[str, Json], kept)


def write(files: Mapping[str, str]) -> None:
    """Writes the files, removes those that are no longer made, and records of which inputs they are."""
    for stale in OUTPUT.glob("*.json"):
        if stale.name not in files:
            stale.unlink()
    for name, text in files.items():
        (OUTPUT / name).write_text(text, "utf-8")
    RECORD.write_text(json.dumps(record(), indent=1) + "\n", "utf-8")


def record() -> dict[str, dict[str, str]]:
    """The version of the documents, and the hash of each input and output as they are now."""
    return {
        "documents": {"version": pinned_version()},
        "inputs": {_shown(file): _hash(file) for file in _inputs()},
        "outputs": {_shown(file): _hash(file) for file in sorted(OUTPUT.glob("*.json"))},
    }


def pinned_version() -> str:
    """The version of google-api-python-client that requirements/catalogue.txt pins."""
    found = re.search(r"^google-api-python-client==(\S+)", REQUIREMENTS.read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("requirements/catalogue.txt does not pin google-api-python-client: run `make lock`")
    return found[1]


def _inputs() -> Iterator[Path]:
    folder = Path(__file__).parent
    for pattern in ("*.py", "facts/*.json", "exceptions/*.yaml"):
        yield from sorted(folder.glob(pattern))
    yield RECORDED


def _shown(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """A line for each kind that came or went, and for each fact of a kind that is not as it was."""
    old, new = _rows_in(before), _rows_in(after)
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"{name}: removed"
        elif name not in old:
            yield f"{name}: added"
        else:
            yield from (f"{name}: {line}" for line in _differences(old[name], new[name], ""))


def _rows_in(files: Mapping[str, str]) -> dict[str, Json]:
    services = {name: json.loads(text) for name, text in files.items() if name not in ("index.json", "held.json")}
    for row in (row for rows in services.values() for row in rows.values()):
        put_shared_back(row)
    return {f"{name[:-5]}/{kind}": row for name, rows in services.items() for kind, row in rows.items()}


def _differences(old: Json, new: Json, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            here = path if key == "fields" else f"{path}.{key}" if path else key
            if key not in new:
                yield f"{here}: {_short(old[key])} removed"
            elif key not in old:
                yield f"{here}: {_short(new[key])} added"
            else:
                yield from _differences(old[key], new[key], here)
    elif old != new or type(old) is not type(new):
        yield f"{path}: {_short(old)} -> {_short(new)}"


def _short(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
