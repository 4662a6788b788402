"""Comparison of two preview reports of one recorded world, with a verdict per resource; as JUnit and Markdown."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, TypeAlias
from xml.etree import ElementTree as Xml

from setpoint.clients.write_guard import leaf_fields
from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.messages import printable
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import PreviewFinding

ReportData: TypeAlias = Mapping[str, Any]
# The plans that are compared: of the next step, and of a step without the cookie.
_PLANS: Final = ("plan", "withoutCookie")
# The error of the plan without the cookie, where there is no such plan.
_NO_COOKIE_ERROR: Final = "withoutCookieError"
# Findings that are wrong whatever the plan writes.
_WRONG_FINDINGS: Final = (PreviewFinding.FAILED, PreviewFinding.UNSETTLED)


class UpgradeVerdict(StrEnum):
    """What the candidate would do to a resource, compared with the baseline; the least severe first."""

    SAME = "same"
    FEWER = "fewer writes"
    DIFFERENT = "different writes"
    NEW = "new writes"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class ResourceComparison:
    """One resource: the verdict, the fields that differ, and the finding of each version."""

    ref: ResourceRef
    verdict: UpgradeVerdict
    fields: tuple[str, ...]
    baseline: str
    candidate: str
    # The error of the candidate, where it cannot plan.
    trouble: str = ""

    def to_data(self) -> Json:
        """The comparison as JSON."""
        group, kind, namespace, name = self.ref
        data: dict[str, Json] = {"group": group, "kind": kind, "namespace": namespace, "name": name}
        data |= {"verdict": self.verdict.value, "fields": list(self.fields)}
        data |= {"baseline": self.baseline, "candidate": self.candidate}
        return {**data, "error": self.trouble} if self.trouble else data


@dataclass(frozen=True, slots=True)
class Comparison:
    """All resources of a world, sorted by ref; writes that the candidate tried, and reads that are not recorded."""

    each: tuple[ResourceComparison, ...]
    blocked: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[UpgradeVerdict, int]:
        """The number of resources by verdict."""
        return Counter(one.verdict for one in self.each)

    @property
    def one_time(self) -> int:
        """The number of resources that need one diff, without a write, before their cookie matches again."""
        return sum(one.candidate == PreviewFinding.ONE_TIME != one.baseline for one in self.each)

    @property
    def worst(self) -> UpgradeVerdict:
        """The most severe verdict; BROKEN if a write was blocked or a read missed."""
        found = {one.verdict for one in self.each}
        if self.blocked or self.missed:
            return UpgradeVerdict.BROKEN
        return max(found, key=list(UpgradeVerdict).index, default=UpgradeVerdict.SAME)

    def to_data(self) -> dict[str, Json]:
        """The report as JSON: resources with the verdict SAME are only counted."""
        return {
            "verdict": self.worst.value,
            "summary": {one.value: self.counts[one] for one in UpgradeVerdict if one in self.counts},
            "oneTime": self.one_time,
            "resources": [one.to_data() for one in self.each if one.verdict is not UpgradeVerdict.SAME],
            "blocked": list(self.blocked),
            "missed": list(self.missed),
        }


def compare_reports(baseline: ReportData, candidate: ReportData) -> Comparison:
    """The verdict on the candidate. A resource that only one version manages counts, too."""
    before, after = _by_ref(baseline), _by_ref(candidate)
    each = (_compare_resource(ref, before.get(ref), after.get(ref)) for ref in sorted({*before, *after}))
    return Comparison(tuple(each), _new_blocks(baseline, candidate), tuple(candidate["missed"]))


def _new_blocks(baseline: ReportData, candidate: ReportData) -> tuple[str, ...]:
    known = set(map(_block, baseline["blocked"]))
    return tuple(dict.fromkeys(one for one in map(_block, candidate["blocked"]) if one not in known))


def _block(one: ReportData) -> str:
    return f"{one['method']} {one['target']} ({one['way']}), tried for {one['caller'] or 'no resource'}"


def _by_ref(report: ReportData) -> dict[ResourceRef, ReportData]:
    return {ResourceRef(one["group"], one["kind"], one["namespace"], one["name"]): one for one in report["resources"]}


def _compare_resource(ref: ResourceRef, before: ReportData | None, after: ReportData | None) -> ResourceComparison:
    was, now = ("not looked after" if one is None else str(one["finding"]) for one in (before, after))
    trouble = _trouble(before, after)
    if trouble is not None:
        return ResourceComparison(ref, UpgradeVerdict.BROKEN, (), was, now, trouble)
    pairs = [(_changes(before, plan_name), _changes(after, plan_name)) for plan_name in _PLANS]
    verdict = max((_verdict(*pair) for pair in pairs), key=list(UpgradeVerdict).index)
    if verdict is UpgradeVerdict.SAME:
        # The same plan may be sent as other requests.
        pairs = [(_requests(before, after), _requests(after, before))]
        verdict = UpgradeVerdict.DIFFERENT if pairs[0][0].keys() != pairs[0][1].keys() else verdict
    fields = dict.fromkeys(path for one, other in pairs for path in _fields(one, other))
    return ResourceComparison(ref, verdict, tuple(fields), was, now)


def _trouble(before: ReportData | None, after: ReportData | None) -> str | None:
    """The error of the candidate that the baseline does not have; None if there is none."""
    if after is None:
        return "the candidate does not manage it"
    if before is not None and _same_outcome(before, after):
        return None
    refused: str | None = after.get(_NO_COOKIE_ERROR)
    return str(after.get("error") or after["finding"]) if after["finding"] in _WRONG_FINDINGS else refused


def _same_outcome(before: ReportData, after: ReportData) -> bool:
    return all(before.get(name) == after.get(name) for name in ("finding", "error", _NO_COOKIE_ERROR))


# The path of each change, by the canonical bytes of the change and its write.
_Changes: TypeAlias = Mapping[bytes, str]


def _changes(one: ReportData | None, plan_name: str) -> _Changes:
    """The changes of a plan; the plan without the cookie is reported only where it differs."""
    plan = None if one is None else one.get(plan_name, one.get("plan"))
    return {} if plan is None else dict(_flat(plan["writes"]))


def _flat(writes: Iterable[ReportData]) -> Iterable[tuple[bytes, str]]:
    for write in writes:
        head = [write["action"], write["name"]]
        if not write["changes"]:
            yield canonical([*head, None]), f"({write['action']})"
        for change in write["changes"]:
            change_key = [change["path"], "after" in change, change.get("after")]
            yield canonical([*head, *change_key]), change["path"]


def _requests(one: ReportData | None, other: ReportData | None) -> _Changes:
    """The requests of a resource field by field, where both versions report requests."""
    if one is None or other is None or not other.get("requests"):
        return {}
    return {key: text for request in one.get("requests", ()) for key, text in _parts(request)}


def _parts(request: ReportData) -> Iterable[tuple[bytes, str]]:
    head, text = [request["way"], request["method"], request["target"]], f"{request['method']} {request['target']}"
    parts = list(leaf_fields(request["body"]))
    if not parts:
        yield canonical([*head, request["body"]]), text
    for path, value in parts:
        yield canonical([*head, str(path), value]), f"{text}: {path}"


def _verdict(before: _Changes, after: _Changes) -> UpgradeVerdict:
    if before.keys() == after.keys():
        return UpgradeVerdict.SAME
    if after.keys() < before.keys():
        return UpgradeVerdict.FEWER
    return UpgradeVerdict.DIFFERENT if before else UpgradeVerdict.NEW


def _fields(before: _Changes, after: _Changes) -> Iterable[str]:
    """The fields that only one version writes, or writes with another value."""
    both = {**before, **after}
    return sorted({both[key] for key in before.keys() ^ after.keys()})


# --- Reports ---------------------------------------------------------------------------------------------------------

# Verdicts that fail a JUnit test.
_FAILING: Final = (UpgradeVerdict.DIFFERENT, UpgradeVerdict.NEW, UpgradeVerdict.BROKEN)
_MAX_ROWS: Final = 100


@dataclass(frozen=True, slots=True)
class ReportLabels:
    """The names of both versions."""

    baseline: str
    candidate: str


def junit_report(found: Comparison, names: ReportLabels) -> str:
    """A test case for each resource, in a suite for each kind; it fails if the candidate would write otherwise."""
    root = Xml.Element("testsuites", name=_printable(f"{names.baseline} → {names.candidate}"))
    by_kind = sorted(found.each, key=lambda one: (one.ref.kind, one.ref))
    for kind, some in groupby(by_kind, key=lambda one: one.ref.kind):
        _suite(root, kind, list(some))
    if found.blocked or found.missed:
        _suite(root, "candidate", [])
        for text in (*(f"blocked: {one}" for one in found.blocked), *(f"not recorded: {one}" for one in found.missed)):
            case = Xml.SubElement(root[-1], "testcase", classname="candidate", name=_printable(text))
            Xml.SubElement(case, "failure", message=_printable(text), type=UpgradeVerdict.BROKEN.value)
        root[-1].set("tests", str(len(root[-1])))
        root[-1].set("failures", str(len(root[-1])))
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _suite(root: Xml.Element, kind: str, some: list[ResourceComparison]) -> None:
    failures = sum(one.verdict in _FAILING for one in some)
    suite = Xml.SubElement(root, "testsuite", name=kind, tests=str(len(some)), failures=str(failures))
    for one in some:
        case = Xml.SubElement(suite, "testcase", classname=kind, name=_printable(f"{one.ref.namespace}/{one.ref.name}"))
        if one.verdict in _FAILING:
            failure = Xml.SubElement(case, "failure", message=_printable(_why(one)), type=one.verdict.value)
            failure.text = _printable(
                "\n".join((f"{one.baseline} → {one.candidate}", *one.fields, one.trouble)).strip()
            )


def _printable(text: str) -> str:
    """`text` with characters that XML cannot hold replaced."""
    return "".join(one if one.isprintable() or one == "\n" else "�" for one in text)


def markdown_report(found: Comparison, names: ReportLabels) -> str:
    """The verdict, the counts and the differences in Markdown."""
    return "".join(f"{line}\n" for line in _markdown(found, names))


def _markdown(found: Comparison, names: ReportLabels) -> Iterator[str]:
    yield f"# {_cell(names.baseline)} → {_cell(names.candidate)}: {found.worst.value}"
    yield from ("", "| verdict | resources |", "|---|---|")
    yield from (f"| {one.value} | {found.counts[one]} |" for one in UpgradeVerdict if one in found.counts)
    if found.one_time:
        yield from ("", f"{found.one_time} are compared in full once, and nothing is written.")
    different = [one for one in found.each if one.verdict is not UpgradeVerdict.SAME]
    if different:
        yield from ("", "| resource | verdict | fields | before | after |", "|---|---|---|---|---|")
        yield from (_row(one) for one in different[:_MAX_ROWS])
    if len(different) > _MAX_ROWS:
        yield from ("", f"… and {len(different) - _MAX_ROWS} more.")
    yield from _list("Blocked", found.blocked)
    yield from _list("Not recorded", found.missed)


def _list(title: str, items: tuple[str, ...]) -> Iterator[str]:
    if items:
        yield from ("", f"## {title}", "", *(f"* {_cell(one)}" for one in items))


def _row(one: ResourceComparison) -> str:
    fields = _cell(one.trouble) or ", ".join(f"`{_cell(path)}`" for path in one.fields)
    return (
        f"| {_cell(str(one.ref))} | {one.verdict.value} | {fields} | {_cell(one.baseline)} | {_cell(one.candidate)} |"
    )


def _why(one: ResourceComparison) -> str:
    return f"{one.verdict.value}: {one.trouble or ', '.join(one.fields)}"


def _cell(text: str) -> str:
    return printable(" ".join(text.split())).replace("|", "\\|").replace("<", "&lt;")
