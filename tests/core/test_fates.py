"""What became of people's changes, in words."""

from setpoint.core.fates import Fate, Finding, conflicts, edits_condition, fates, standing, summary
from setpoint.core.paths import Path
from setpoint.core.threeway import EntryMap, Table, Whole, merge, remember
from setpoint.core.values import Json

TABLE: Table = {Path.parse("env"): EntryMap(), Path.parse("size"): Whole()}


def told(last: Json, live: Json, generated: Json) -> list[str]:
    return [str(one) for one in fates("Thing a/b", merge(remember(last, TABLE), live, generated, TABLE))]


def test_a_conflict_says_what_to_do() -> None:
    last, live, generated = ({"env": {"A": text, "B": "1"}} for text in ("1", "2", "3"))
    live["env"].pop("B")
    generated["env"]["B"] = "2"

    assert told(last, live, generated) == [
        "Thing a/b env.A: a person's value is kept, but what is generated has changed, too: "
        "put the generated value there to take it over",
        "Thing a/b env.B: removed by a person, and stays so, but what is generated has changed, too: "
        "look whether it is needed",
    ]


def test_what_is_retired_is_told_wherever_it_stood() -> None:
    last: Json = {"env": {"A": "1"}, "size": 2, "zone": "z", "same": 1}

    assert told(last, last, {"same": 1}) == [
        f"Thing a/b {path}: no longer generated, and nobody had changed it: it is gone"
        for path in ("env.A", "size", "zone")
    ]


def test_what_the_owner_moves_on_is_not_told() -> None:
    assert (
        told({"env": {"A": "1"}, "zone": "z"}, {"env": {"A": "1"}, "zone": "z"}, {"env": {"A": "2"}, "zone": "y"}) == []
    )


def test_a_summary_starts_with_what_is_most_urgent() -> None:
    last: Json = {"env": {"A": "1", "C": "1"}, "zone": "z"}
    live: Json = {"env": {"A": "2", "B": "2", "C": "1"}, "zone": "y"}
    merged = merge(remember(last, TABLE), live, {"env": {"A": "3"}, "zone": "z"}, TABLE)

    findings = fates("Thing a/b", merged)

    assert summary(findings) == (
        "1 conflicting: Thing a/b env.A; 1 reverted: Thing a/b zone; 1 preserved: Thing a/b env.B; "
        "1 retired: Thing a/b env.C"
    )
    assert {one.fate for one in findings} == set(Fate)
    assert summary(()) == ""


def findings(last: Json, live: Json, generated: Json) -> tuple[Finding, ...]:
    return fates("Thing a/b", merge(remember(last, TABLE), live, generated, TABLE))


def test_a_conflict_lasts_as_long_as_the_edit() -> None:
    live: Json = {"env": {"A": "2"}, "zone": "mine"}
    new: Json = {"env": {"A": "3", "B": "2"}, "zone": "z"}
    torn = standing(findings({"env": {"A": "1", "B": "1"}, "zone": "z"}, live, new))

    after = standing(findings(new, live, new), conflicts(torn))
    resolved = standing(findings(new, {"env": {"A": "3"}}, new), conflicts(after))

    assert conflicts(torn) == ("Thing a/b env.A", "Thing a/b env.B")
    assert after == torn
    assert [(one.place, one.fate) for one in resolved] == [("Thing a/b env.B", Fate.CONFLICTING)]
    assert standing(findings(new, new, new), conflicts(after)) == ()


def test_a_condition_says_whether_there_are_edits_and_whether_they_are_in_conflict() -> None:
    kept = standing(findings({}, {"env": {"A": "1"}}, {}))
    torn = standing(findings({}, {"env": {"A": "1"}}, {"env": {"A": "2"}}))

    told = [(one.status, one.reason, one.message) for one in map(edits_condition, ((), kept, torn))]

    assert told == [
        ("False", "AsGenerated", "everything is as it is generated"),
        ("True", "EditsKept", "1 preserved: Thing a/b env.A"),
        ("True", "Conflicting", "1 conflicting: Thing a/b env.A"),
    ]
