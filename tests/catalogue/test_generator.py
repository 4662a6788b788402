import json
from pathlib import Path
from typing import Any, cast

import pytest

from setpoint.catalogue.index import held_kinds, kinds_by_group
from setpoint.catalogue.rows import expand, facts_of
from tools.catalogue import exceptions
from tools.catalogue.compaction import compact
from tools.catalogue.entries import Rows
from tools.catalogue.exceptions import ExceptionRefused, apply_exceptions
from tools.catalogue.generated import RECORD, changes, record
from tools.catalogue.lines import CLASS_B, HOOK, hook_lines, lines_by_kind


def test_the_catalogue_is_made_of_the_inputs_as_they_are() -> None:
    recorded = json.loads(RECORD.read_text("utf-8"))

    assert record() == recorded, "run `make catalogue`: an input or an output of it was edited"


def test_every_row_is_read_and_has_what_it_takes_to_find_an_object() -> None:
    rows = [facts_of(name) for name in kinds_by_group()]

    assert len(rows) >= 200
    assert all(row.host and row.name and row.fields and row.methods for row in rows)


def test_a_kind_that_is_held_back_has_a_reason_and_no_row() -> None:
    held, kinds = held_kinds(), {kind for _, kind in kinds_by_group()}

    assert held["SQLInstance"] == "written by hand"
    assert not held.keys() & kinds


def test_no_kind_has_more_exceptions_than_its_budget() -> None:
    assert {kind: count for kind, count in lines_by_kind().items() if count > CLASS_B} == {}


def test_the_lines_of_code_for_a_single_kind_are_counted_by_module(tmp_path: Path) -> None:
    choice = 'from a.variants.searches import Search\nfrom a.variants.lists import Rest\n{\n    "OddKind": Search,\n}\n'
    (tmp_path / "choice.py").write_text(choice, encoding="utf-8")
    (tmp_path / "searches.py").write_text("first = 1\n\nsecond = 2\n", encoding="utf-8")

    assert hook_lines(tmp_path) == {"searches": 2}


def test_no_code_for_a_single_kind_is_over_its_budget() -> None:
    found = hook_lines()

    assert {"connections", "identities", "roles"} <= found.keys()
    assert {name: count for name, count in found.items() if count > HOOK} == {}


def test_an_exception_names_the_member_of_the_api_or_sets_facts(lines: dict[str, Any]) -> None:
    lines |= {"mode": "config.mode", "size": {"to": "sizeGb", "ref.form": "id"}, "rules.port": {"default": None}}

    fields = applied()["fields"]

    assert fields["mode"] == {"type": "string", "to": "config.mode"}
    assert fields["size"] == {"type": "integer", "to": "sizeGb", "ref": {"kinds": ["A"], "form": "id"}}
    assert fields["rules"]["fields"]["port"] == {"type": "integer"}


def test_an_exception_adds_a_field_and_removes_one(lines: dict[str, Any]) -> None:
    lines |= {"rules.more": {"type": "string"}, "mode": None}

    fields = applied()["fields"]

    assert list(fields) == ["size", "rules"]
    assert fields["rules"]["fields"]["more"] == {"type": "string"}


def test_a_star_stands_for_each_field(lines: dict[str, Any]) -> None:
    lines |= {"rules.*": {"immutable": True}}

    assert applied()["fields"]["rules"]["fields"] == {"port": {"type": "integer", "default": 1, "immutable": True}}


def test_two_stars_stand_for_any_depth(lines: dict[str, Any]) -> None:
    lines |= {"**.port": "portNumber"}

    assert applied()["fields"]["rules"]["fields"]["port"]["to"] == "portNumber"


def test_an_exception_sets_a_key_of_the_row_and_removes_one(lines: dict[str, Any]) -> None:
    lines |= {"$operations.create": "longrunning", "$labels": None}

    row = applied()

    assert (row["operations"], "labels" in row) == ({"create": "longrunning"}, False)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"absent": "x"}, "Thing: absent: no such field, and no type"),
        ({"absent.deeper": "x"}, "no such field"),
        ({"mode": {"colour": "red"}}, "a field has no colour"),
        ({"mode": 3}, "neither a member of the API"),
        ({"$colour": "red"}, "a row has no colour"),
    ],
)
def test_an_exception_that_fits_nothing_is_refused(lines: dict[str, Any], line: dict[str, Any], reason: str) -> None:
    lines |= line

    with pytest.raises(ExceptionRefused, match=reason):
        applied()


def test_a_change_is_told_by_kind_and_fact() -> None:
    before = {"a.json": '{"Kept":{"fields":{"size":{"type":"integer"}}},"Gone":{"fields":{}}}'}
    after = {"a.json": '{"Kept":{"fields":{"size":{"type":"string","to":"s"}}},"New":{"fields":{}}}'}

    assert list(changes(before, after)) == [
        "a/Gone: removed",
        'a/Kept: size.to: "s" added',
        'a/Kept: size.type: "integer" -> "string"',
        "a/New: added",
    ]


def test_what_a_file_leaves_out_is_put_back_when_it_is_read() -> None:
    inner = {"seconds": {"type": "integer", "required": True}, "nanos": {"type": "integer", "immutable": True}, "x": {}}
    outer: dict[str, Any] = {"ttl": {"type": "object", "fields": inner}, "name": {"type": "string"}}
    whole: dict[str, Any] = {
        "api": "compute",
        "prefix": "v1/",
        "name": "projects/{project}/things/{thing}",
        "methods": {
            "create": {"verb": "POST", "path": "v1/projects/{project}/things"},
            "get": {"verb": "GET", "path": "v1/projects/{project}/things/{thing}"},
            "delete": {"verb": "POST", "path": "v1/projects/{project}/things/{thing}:drop"},
        },
        "other_methods": {"setLabels": {"verb": "POST", "path": "v1/projects/{project}/things/{thing}/setLabels"}},
        "fields": {
            "one": {"type": "object", "fields": outer},
            "two": {"type": "object", "fields": outer},
            "ttl": {"type": "object", "fields": inner},
        },
    }
    row = json.loads(json.dumps(whole))

    compact(row)
    short = json.dumps(row)
    expand(row)

    assert len(short) < 0.6 * len(json.dumps(whole))
    del outer["name"]["type"]
    assert row == whole


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    monkeypatch.setattr(exceptions, "exceptions_of", lambda service: {"Thing": found})
    return found


def applied() -> Any:
    row = {
        "kind": "Thing",
        "labels": "labels",
        "fields": {
            "mode": {"type": "string"},
            "size": {"type": "integer", "ref": {"kinds": ["A"]}},
            "rules": {"type": "list", "fields": {"port": {"type": "integer", "default": 1}}},
        },
    }
    apply_exceptions("service", cast(Rows, {"Thing": row}))
    return row
