"""The benchmarks run, and compare like with like. What they measure is no test's business."""

import json
import re
import sys

import orjson
import pytest
from click.testing import CliRunner, Result

from benchmarks import sql_instance
from benchmarks.__main__ import main, run
from benchmarks.measuring import QUICK, Disagreement
from benchmarks.opponents import Canonicalizer, Differ, Opponents
from setpoint.core.canonical import digest

ROWS = {
    "canonical bytes + SHA-256": (
        "ours, a tree",
        "ours, a struct of the modelled fields",
        "orjson, sorted: the floor, not canonical",
        "json, sort_keys: not canonical",
    ),
    "canonical bytes + SHA-256: a float, astral keys": (
        "ours, a tree",
        "ours, a struct of the modelled fields",
        "orjson, sorted: the floor, not canonical",
        "json, sort_keys: not canonical",
    ),
    "fast-path decision, from response bytes": (
        "ours: decoded, digest, decide",
        "ours: the body's digest is the last one",
        "orjson.loads + SHA-256 of the bytes",
    ),
    "effective desired state, one field to change": (
        "ours: overlay, ignore-unspecified",
        "ours: overlay, prune",
        "copy.deepcopy, before any change",
    ),
    "fields to change: none": (
        "ours: overlay + diff, ignore-unspecified",
        "ours: overlay + diff, prune",
        "ours: plan_fields, ignore-unspecified",
        "ours: plan_fields, prune",
    ),
    "fields to change: one, in a keyed list": (
        "ours: overlay + diff, ignore-unspecified",
        "ours: overlay + diff, prune",
        "ours: plan_fields, ignore-unspecified",
        "ours: plan_fields, prune",
    ),
    "three-way merge: three edits, two moves": (
        "ours: merge",
        "ours: remember",
        "copy.deepcopy, before any edit",
    ),
    "start-up, a process each": (
        "setpoint --help",
        "python -c pass: the interpreter alone",
        "setpoint version",
        "setpoint get, nothing declared",
    ),
}
SIZES = {"start-up, a process each": ("",), "canonical bytes + SHA-256: a float, astral keys": ("6 KB",)}


def bench(*arguments: str) -> Result:
    """A run with ours alone: the dev environment has no opponents."""
    piped = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None}
    return CliRunner(env=piped).invoke(main, ["--quick", "--alone", *arguments], catch_exceptions=False)


def test_prints_every_row_and_counts_the_bars() -> None:
    result = bench()

    lines = [line.strip() for line in result.output.splitlines()]
    assert result.exit_code == 0
    for subject, names in ROWS.items():
        block = lines[lines.index(subject) + 1 :]
        assert [line.startswith(name) for line, name in zip(block, names, strict=False)] == [True] * len(names)
    assert re.fullmatch("bars met: [0-3] of 3", lines[-1])


def test_the_cookie_meets_its_bar() -> None:
    assert "≤ 129 bytes: 129 bytes, met" in bench("fast-path").output


def test_json_names_every_row_in_every_size() -> None:
    report = json.loads(bench("-o", "json").output)

    rows = [(one["subject"], one["contestant"], one["size"]) for one in report["figures"]]
    for subject, names in ROWS.items():
        sizes = SIZES.get(subject, ("1 KB", "6 KB", "60 KB"))
        assert {(subject, name, size) for name in names for size in sizes} <= set(rows)
    assert len(rows) == len(set(rows)) == 71
    assert len(report["bars"]) == 3


def test_measures_only_the_groups_that_are_named() -> None:
    report = json.loads(bench("-o", "json", "three-way").output)

    assert {one["subject"] for one in report["figures"]} == {"three-way merge: three edits, two moves"}


def test_says_which_opponent_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rfc8785", None)

    result = CliRunner().invoke(main, ["--quick"])

    assert result.exit_code == 1
    assert "rfc8785 is not installed: run `make bench`, or measure ours alone with --alone" in result.output


def test_an_opponent_with_other_canonical_bytes_stops_the_run() -> None:
    indenting = Canonicalizer("orjson", lambda value: orjson.dumps(value, option=orjson.OPT_INDENT_2))

    with pytest.raises(Disagreement, match=r"canonical bytes \+ SHA-256, 1 KB: orjson answers"):
        run(("canonical",), Opponents((indenting,), ()), QUICK)


@pytest.mark.parametrize("group", ["fast-path", "plan", "three-way"])
def test_an_opponent_that_finds_nothing_stops_the_run(group: str) -> None:
    blind = Differ("orjson", lambda a, b: [], lambda a, b: [], lambda last, live, generated: generated)

    with pytest.raises(Disagreement, match=r", 1 KB: .*orjson"):
        run((group,), Opponents((), (blind,)), QUICK)


def test_an_opponent_that_finds_another_field_stops_the_run() -> None:
    astray = Differ("orjson", lambda a, b: [] if a == b else ["x"], lambda a, b: [("x",)], lambda *sides: sides[2])

    with pytest.raises(Disagreement, match=", 1 KB: orjson"):
        run(("plan",), Opponents((), (astray,)), QUICK)


def test_a_command_that_answers_something_else_stops_the_run() -> None:
    with pytest.raises(Disagreement, match=r"start-up, a process each: json\.tool --help answers"):
        run(("start-up",), Opponents((), (), ("json.tool",)), QUICK)


@pytest.mark.parametrize(("label", "low", "high"), [("1 KB", 900, 1100), ("6 KB", 5500, 6500), ("60 KB", 55e3, 65e3)])
def test_an_instance_is_about_as_large_as_its_label_says(label: str, low: float, high: float) -> None:
    size = next(size for size in sql_instance.SIZES if size.label == label)

    assert low < len(sql_instance.body_of(size)) < high


def test_what_the_type_leaves_out_does_not_move_the_live_digest() -> None:
    body = sql_instance.body_of(sql_instance.SIZES[1])
    tree = orjson.loads(body) | {"etag": "moved", "createTime": "1999-12-31T23:59:59Z", "serverCaCert": {}}

    assert digest(sql_instance.decode(orjson.dumps(tree))) == digest(sql_instance.decode(body))
