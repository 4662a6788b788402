"""Comparison of two preview reports: what the candidate would write that the baseline would not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.replay.comparison import Comparison, UpgradeVerdict, compare_reports

Change = dict[str, Any]
SIZE: Change = {"path": "spec.size", "rule": "spec", "before": 1, "after": 2}
NOTE: Change = {"path": "spec.note", "rule": "default", "before": "a"}


def _plan(*changes: Change, action: str = "update") -> dict[str, Any]:
    writes = [{"action": action, "name": action, "changes": list(changes)}] if changes else []
    return {"decision": "drifted", "writes": writes, "kept": []}


def _one(finding: str = "in sync", name: str = "a", **members: Any) -> dict[str, Any]:
    return {"group": "g", "kind": "Gadget", "namespace": "default", "name": name, "finding": finding, **members}


def _report(*resources: dict[str, Any], blocked: Any = (), missed: Any = ()) -> dict[str, Any]:
    return {"summary": {}, "resources": list(resources), "blocked": list(blocked), "missed": list(missed)}


def _verdict(before: dict[str, Any], after: dict[str, Any]) -> tuple[UpgradeVerdict, tuple[str, ...]]:
    (one,) = compare_reports(_report(before), _report(after)).each
    return one.verdict, one.fields


QUIET, WRITING = _one(plan=_plan()), _one("writes", plan=_plan(SIZE))


@pytest.mark.parametrize(
    ("before", "after", "verdict", "fields"),
    [
        (QUIET, QUIET, UpgradeVerdict.SAME, ()),
        (WRITING, WRITING, UpgradeVerdict.SAME, ()),
        (WRITING, _one("one-time", plan=_plan()), UpgradeVerdict.FEWER, ("spec.size",)),
        (_one("writes", plan=_plan(SIZE, NOTE)), WRITING, UpgradeVerdict.FEWER, ("spec.note",)),
        (WRITING, _one("writes", plan=_plan(SIZE, NOTE)), UpgradeVerdict.DIFFERENT, ("spec.note",)),
        (WRITING, _one("writes", plan=_plan({**SIZE, "after": 3})), UpgradeVerdict.DIFFERENT, ("spec.size",)),
        (WRITING, _one("writes", plan=_plan({**SIZE, "after": True})), UpgradeVerdict.DIFFERENT, ("spec.size",)),
        (WRITING, _one("writes", plan=_plan({"path": "spec.size"})), UpgradeVerdict.DIFFERENT, ("spec.size",)),
        (WRITING, _one("writes", plan=_plan(SIZE, action="replace")), UpgradeVerdict.DIFFERENT, ("spec.size",)),
        (QUIET, WRITING, UpgradeVerdict.NEW, ("spec.size",)),
        (_one("waiting", error="reference"), WRITING, UpgradeVerdict.NEW, ("spec.size",)),
        (QUIET, _one("masked", plan=_plan(), withoutCookie=_plan(NOTE)), UpgradeVerdict.NEW, ("spec.note",)),
        (_one("masked", plan=_plan(), withoutCookie=_plan(NOTE)), QUIET, UpgradeVerdict.FEWER, ("spec.note",)),
        (QUIET, _one("failed", error="GET /b was not asked"), UpgradeVerdict.BROKEN, ()),
        (QUIET, _one("unsettled", plan=_plan()), UpgradeVerdict.BROKEN, ()),
        (_one("failed", error="403"), _one("failed", error="403"), UpgradeVerdict.SAME, ()),
        (_one("failed", error="403"), _one("failed", error="other"), UpgradeVerdict.BROKEN, ()),
        (_one("failed", error="403"), QUIET, UpgradeVerdict.SAME, ()),
        (QUIET, _one("masked", plan=_plan(), withoutCookieError="fixed"), UpgradeVerdict.BROKEN, ()),
        (_one("masked", plan=_plan(), withoutCookieError="fixed"), QUIET, UpgradeVerdict.SAME, ()),
    ],
)
def test_a_verdict_names_the_fields(before: Any, after: Any, verdict: UpgradeVerdict, fields: tuple[str, ...]) -> None:
    assert _verdict(before, after) == (verdict, fields)


PATCH = {"way": "google", "method": "PATCH", "target": "/b/a", "body": {"size": 2, "a": {"b": [1]}}, "fields": ["size"]}


@pytest.mark.parametrize(
    ("after", "fields"),
    [
        ({**PATCH, "body": {"a": {"b": [1]}, "size": 2}}, ()),
        ({**PATCH, "body": {"size": 3, "a": {"b": [1]}}}, ("PATCH /b/a: size",)),
        ({**PATCH, "body": {"size": 2, "a": {"b": [1, 2]}}}, ("PATCH /b/a: a.b",)),
        ({**PATCH, "body": {"size": 2, "a": {"b": [1]}, "note": None}}, ("PATCH /b/a: note",)),
        ({**PATCH, "method": "PUT"}, ("PATCH /b/a: a.b", "PATCH /b/a: size", "PUT /b/a: a.b", "PUT /b/a: size")),
        ({**PATCH, "body": None}, ("PATCH /b/a", "PATCH /b/a: a.b", "PATCH /b/a: size")),
    ],
)
def test_the_same_plan_with_other_requests_is_different(after: Any, fields: tuple[str, ...]) -> None:
    expected = (UpgradeVerdict.DIFFERENT if fields else UpgradeVerdict.SAME, fields)

    assert _verdict({**WRITING, "requests": [PATCH]}, {**WRITING, "requests": [after]}) == expected


def test_requests_are_compared_where_both_versions_report_them() -> None:
    known, unknown = {**WRITING, "requests": [PATCH]}, WRITING

    assert [_verdict(*pair)[0] for pair in ((known, unknown), (unknown, known))] == [UpgradeVerdict.SAME] * 2
    assert _verdict(known, {**known, "requests": [PATCH, {**PATCH, "target": "/b/c"}]})[0] is UpgradeVerdict.DIFFERENT


def test_a_deletion_without_fields_counts() -> None:
    gone = {"decision": "intent changed", "writes": [{"action": "delete", "name": "delete", "changes": []}], "kept": []}

    assert _verdict(QUIET, _one("writes", plan=gone)) == (UpgradeVerdict.NEW, ("(delete)",))


def test_a_resource_that_only_one_version_manages_counts() -> None:
    dropped, taken_up = compare_reports(_report(QUIET), _report()), compare_reports(_report(), _report(WRITING))

    assert [(one.verdict, one.trouble, one.candidate) for one in dropped.each] == [
        (UpgradeVerdict.BROKEN, "the candidate does not manage it", "not looked after")
    ]
    assert [(one.verdict, one.baseline) for one in taken_up.each] == [(UpgradeVerdict.NEW, "not looked after")]


def test_blocked_writes_and_missed_reads_of_the_candidate_are_broken() -> None:
    block: dict[str, Any] = {
        "method": "PATCH",
        "target": "/b",
        "way": "google",
        "caller": "",
        "body": None,
        "fields": [],
    }

    tried = compare_reports(_report(QUIET), _report(QUIET, blocked=[block, block]))
    as_before = compare_reports(_report(QUIET, blocked=[block]), _report(QUIET, blocked=[block]))
    asked = compare_reports(_report(QUIET), _report(QUIET, missed=["GET /b (google)"]))

    assert (tried.worst, tried.blocked) == (UpgradeVerdict.BROKEN, ("PATCH /b (google), tried for no resource",))
    assert as_before.worst is UpgradeVerdict.SAME
    assert asked.worst is UpgradeVerdict.BROKEN


def test_the_most_severe_verdict_counts_and_equal_resources_are_only_counted() -> None:
    before = _report(_one(name="a", plan=_plan()), _one(name="b", plan=_plan()), _one("writes", "c", plan=_plan(SIZE)))
    after = _report(
        _one("one-time", "a", plan=_plan()), _one("writes", "b", plan=_plan(NOTE)), _one(name="c", plan=_plan())
    )

    found = compare_reports(before, after)

    assert (found.worst, found.one_time) == (UpgradeVerdict.NEW, 1)
    report = found.to_data()
    assert report["summary"] == {"same": 1, "fewer writes": 1, "new writes": 1}
    assert [one["name"] for one in report["resources"]] == ["b", "c"]  # type: ignore[index,union-attr,call-overload] # plain JSON
    assert Comparison(()).worst is UpgradeVerdict.SAME


# --- Laws -------------------------------------------------------------------------------------------------------------

paths = st.sampled_from(("spec.a", "spec.b", "spec.c"))
changes: st.SearchStrategy[Change] = st.builds(
    lambda path, after: {"path": path, "after": after}, paths, st.integers(0, 1)
)
plans = st.lists(changes, max_size=3).map(lambda some: _plan(*some))


@st.composite
def previewed(draw: st.DrawFn) -> dict[str, Any]:
    """Any finding with plans."""
    one = _one(draw(st.sampled_from(("in sync", "one-time", "writes", "masked"))), plan=draw(plans))
    return {**one, "withoutCookie": draw(plans)} if draw(st.booleans()) else one


def _written(one: dict[str, Any]) -> set[tuple[str, str, int]]:
    plans = {"plan": one["plan"], "withoutCookie": one.get("withoutCookie", one["plan"])}
    return {
        (name, change["path"], change["after"])
        for name, plan in plans.items()
        for write in plan["writes"]
        for change in write["changes"]
    }


@given(previewed())
def test_a_version_is_the_same_as_itself(one: dict[str, Any]) -> None:
    assert _verdict(one, one) == (UpgradeVerdict.SAME, ())


@given(previewed(), previewed())
def test_every_new_write_is_reported(before: dict[str, Any], after: dict[str, Any]) -> None:
    verdict, fields = _verdict(before, after)

    is_new = bool(_written(after) - _written(before))
    assert is_new == (verdict in (UpgradeVerdict.DIFFERENT, UpgradeVerdict.NEW))
    assert (verdict is UpgradeVerdict.SAME) == (_written(after) == _written(before)) == (fields == ())
    assert set(fields) == {path for _, path, _ in _written(after) ^ _written(before)}
