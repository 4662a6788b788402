"""JUnit and Markdown reports say what the comparison says."""

from xml.etree import ElementTree as Xml

from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.resource import ResourceRef
from setpoint.replay.comparison import (
    Comparison,
    ReportLabels,
    ResourceComparison,
    UpgradeVerdict,
    junit_report,
    markdown_report,
)

NAMES = ReportLabels("1.0", "2.0")


def _one(name: str, verdict: UpgradeVerdict, *fields: str, trouble: str = "") -> ResourceComparison:
    return ResourceComparison(
        ResourceRef("g", "Gadget", "default", name), verdict, fields, "in sync", "writes", trouble
    )


FOUND = Comparison(
    (
        _one("a", UpgradeVerdict.SAME),
        _one("b", UpgradeVerdict.NEW, "spec.size"),
        _one("c", UpgradeVerdict.FEWER, "spec.note"),
        _one("d", UpgradeVerdict.BROKEN, trouble="no | such\nthing <x>"),
    ),
    ("PATCH /b (google), tried for no resource",),
    ("GET /c (google)",),
)


def test_the_junit_report_has_a_failure_for_each_failing_resource() -> None:
    root = Xml.fromstring(junit_report(FOUND, NAMES))

    assert root.get("name") == "1.0 → 2.0"
    assert [(one.get("name"), one.get("tests"), one.get("failures")) for one in root] == [
        ("Gadget", "4", "2"),
        ("candidate", "2", "2"),
    ]
    failures = {case.get("name"): case[0].get("message") for case in root.iter("testcase") if len(case)}
    assert failures == {
        "default/b": "new writes: spec.size",
        "default/d": "broken: no | such\nthing <x>",
        "blocked: PATCH /b (google), tried for no resource": "blocked: PATCH /b (google), tried for no resource",
        "not recorded: GET /c (google)": "not recorded: GET /c (google)",
    }


def test_the_markdown_report_lists_what_differs() -> None:
    assert markdown_report(FOUND, NAMES).splitlines() == [
        "# 1.0 → 2.0: broken",
        "",
        "| verdict | resources |",
        "|---|---|",
        "| same | 1 |",
        "| fewer writes | 1 |",
        "| new writes | 1 |",
        "| broken | 1 |",
        "",
        "| resource | verdict | fields | before | after |",
        "|---|---|---|---|---|",
        "| Gadget default/b | new writes | `spec.size` | in sync | writes |",
        "| Gadget default/c | fewer writes | `spec.note` | in sync | writes |",
        "| Gadget default/d | broken | no \\| such thing &lt;x> | in sync | writes |",
        "",
        "## Blocked",
        "",
        "* PATCH /b (google), tried for no resource",
        "",
        "## Not recorded",
        "",
        "* GET /c (google)",
    ]


def test_the_markdown_report_is_limited() -> None:
    many = Comparison(tuple(_one(f"n{number}", UpgradeVerdict.NEW, "spec.size") for number in range(150)))

    lines = markdown_report(many, NAMES).splitlines()

    assert lines[-1] == "… and 50 more."
    assert len(lines) < 120


def test_the_markdown_report_counts_one_time_comparisons() -> None:
    once = Comparison(
        (
            ResourceComparison(
                ResourceRef("g", "Gadget", "default", "a"), UpgradeVerdict.SAME, (), "in sync", "one-time"
            ),
        )
    )

    assert "1 are compared in full once, and nothing is written." in markdown_report(once, NAMES).splitlines()


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_gives_a_well_formed_report(trouble: str, name: str) -> None:
    found = Comparison((_one(name, UpgradeVerdict.BROKEN, trouble=trouble),), (trouble,))

    assert len(list(Xml.fromstring(junit_report(found, NAMES).encode(errors="replace")).iter("failure"))) == 2
    assert "\n\n\n" not in markdown_report(found, NAMES)
