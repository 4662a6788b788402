"""The merge report: which value was kept for each field, and why."""

from setpoint.core.merge.merge_report import (
    FieldResolution,
    Resolution,
    conflicting_fields,
    edits_condition,
    merge_report,
    persistent_resolutions,
    report_summary,
)
from setpoint.core.merge.threeway import EditableFields, EntryMap, WholeValue, merge, remember
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path

TABLE: EditableFields = {Path.parse("env"): EntryMap(), Path.parse("size"): WholeValue()}


def report_lines(last: Json, live: Json, generated: Json) -> list[str]:
    return [str(one) for one in merge_report("Thing a/b", merge(remember(last, TABLE), live, generated, TABLE))]


def test_a_conflict_says_what_to_do() -> None:
    last, live, generated = ({"env": {"A": text, "B": "1"}} for text in ("1", "2", "3"))
    live["env"].pop("B")
    generated["env"]["B"] = "2"

    assert report_lines(last, live, generated) == [
        "Thing a/b env.A: a person's value is kept, but what is generated has changed, too: "
        "put the generated value there to take it over",
        "Thing a/b env.B: removed by a person, and stays so, but what is generated has changed, too: "
        "look whether it is needed",
    ]


def test_retired_fields_are_reported_at_every_level() -> None:
    last: Json = {"env": {"A": "1"}, "size": 2, "zone": "z", "same": 1}

    assert report_lines(last, last, {"same": 1}) == [
        f"Thing a/b {path}: no longer generated, and not edited: it is gone" for path in ("env.A", "size", "zone")
    ]


def test_plain_updates_are_not_reported() -> None:
    assert (
        report_lines(
            {"env": {"A": "1"}, "zone": "z"}, {"env": {"A": "1"}, "zone": "z"}, {"env": {"A": "2"}, "zone": "y"}
        )
        == []
    )


def test_a_summary_starts_with_the_most_urgent_resolution() -> None:
    last: Json = {"env": {"A": "1", "C": "1"}, "zone": "z"}
    live: Json = {"env": {"A": "2", "B": "2", "C": "1"}, "zone": "y"}
    merged = merge(remember(last, TABLE), live, {"env": {"A": "3"}, "zone": "z"}, TABLE)

    resolutions = merge_report("Thing a/b", merged)

    assert report_summary(resolutions) == (
        "1 conflicting: Thing a/b env.A; 1 reverted: Thing a/b zone; 1 preserved: Thing a/b env.B; "
        "1 retired: Thing a/b env.C"
    )
    assert {one.resolution for one in resolutions} == set(Resolution)
    assert report_summary(()) == ""


def resolutions(last: Json, live: Json, generated: Json) -> tuple[FieldResolution, ...]:
    return merge_report("Thing a/b", merge(remember(last, TABLE), live, generated, TABLE))


def test_a_conflict_lasts_as_long_as_the_edit() -> None:
    live: Json = {"env": {"A": "2"}, "zone": "mine"}
    new: Json = {"env": {"A": "3", "B": "2"}, "zone": "z"}
    conflicting = persistent_resolutions(resolutions({"env": {"A": "1", "B": "1"}, "zone": "z"}, live, new))

    after = persistent_resolutions(resolutions(new, live, new), conflicting_fields(conflicting))
    resolved = persistent_resolutions(resolutions(new, {"env": {"A": "3"}}, new), conflicting_fields(after))

    assert conflicting_fields(conflicting) == ("Thing a/b env.A", "Thing a/b env.B")
    assert after == conflicting
    assert [(one.location, one.resolution) for one in resolved] == [("Thing a/b env.B", Resolution.CONFLICTING)]
    assert persistent_resolutions(resolutions(new, new, new), conflicting_fields(after)) == ()


def test_the_condition_reports_edits_and_conflicts() -> None:
    kept = persistent_resolutions(resolutions({}, {"env": {"A": "1"}}, {}))
    conflicting = persistent_resolutions(resolutions({}, {"env": {"A": "1"}}, {"env": {"A": "2"}}))

    conditions = [(one.status, one.reason, one.message) for one in map(edits_condition, ((), kept, conflicting))]

    assert conditions == [
        ("False", "AsGenerated", "everything is as it is generated"),
        ("True", "EditsKept", "1 preserved: Thing a/b env.A"),
        ("True", "Conflicting", "1 conflicting: Thing a/b env.A"),
    ]
