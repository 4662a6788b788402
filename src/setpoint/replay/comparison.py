"""Comparison of two preview reports of one recorded world, with a verdict per resource; as JUnit and Markdown."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, TypeAlias
from xml.etree import ElementTree as Xml

from setpoint.clients.write_guard import leaf_fields
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import PreviewFinding

ReportData: TypeAlias = Mapping[str, Any]
# The looks that are compared: what the next step would do, and what it would do without a cookie.
_LOOKS: Final = ("plan", "withoutCookie")
# Why there is no plan without a cookie, where there is none.
_REFUSED: Final = "withoutCookieError"
# What is wrong with a look, whatever it would write.
_WRONG: Final = (PreviewFinding.FAILED, PreviewFinding.UNSETTLED)


class UpgradeVerdict(StrEnum):
    """How a resource fares with the candidate, the quietest first."""

    SAME = "same"
    FEWER = "fewer writes"
    DIFFERENT = "different writes"
    NEW = "new writes"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class ResourceComparison:
    """One resource: the verdict, the fields that make it so, and what each side found."""

    ref: ResourceRef
    verdict: UpgradeVerdict
    fields: tuple[str, ...]
    baseline: str
    candidate: str
    # What the candidate says, where it cannot look.
    trouble: str = ""

    def to_data(self) -> Json:
        """All of it as plain JSON."""
        group, kind, namespace, name = self.ref
        data: dict[str, Json] = {"group": group, "kind": kind, "namespace": namespace, "name": name}
        data |= {"verdict": self.verdict.value, "fields": list(self.fields)}
        data |= {"baseline": self.baseline, "candidate": self.candidate}
        return {**data, "error": self.trouble} if self.trouble else data


@dataclass(frozen=True, slots=True)
class Comparison:
    """All resources of a world, sorted by ref, and what the candidate tried or asked that it should not have."""

    each: tuple[ResourceComparison, ...]
    blocked: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[UpgradeVerdict, int]:
        """How many there are of each verdict."""
        return Counter(one.verdict for one in self.each)

    @property
    def one_time(self) -> int:
        """How many need one close look though nothing is to be written."""
        return sum(one.candidate == PreviewFinding.ONE_TIME != one.baseline for one in self.each)

    @property
    def worst(self) -> UpgradeVerdict:
        """The loudest verdict; whatever is blocked or missed is broken."""
        found = {one.verdict for one in self.each}
        if self.blocked or self.missed:
            return UpgradeVerdict.BROKEN
        return max(found, key=list(UpgradeVerdict).index, default=UpgradeVerdict.SAME)

    def to_data(self) -> dict[str, Json]:
        """The report as plain JSON: those that are the same are only counted."""
        return {
            "verdict": self.worst.value,
            "summary": {one.value: self.counts[one] for one in UpgradeVerdict if one in self.counts},
            "oneTime": self.one_time,
            "resources": [one.to_data() for one in self.each if one.verdict is not UpgradeVerdict.SAME],
            "blocked": list(self.blocked),
            "missed": list(self.missed),
        }


def compare_reports(baseline: ReportData, candidate: ReportData) -> Comparison:
    """The verdict on the candidate. A resource that only one of them looks after counts as it is."""
    before, after = _by_ref(baseline), _by_ref(candidate)
    each = (_compare_resource(ref, before.get(ref), after.get(ref)) for ref in sorted({*before, *after}))
    return Comparison(tuple(each), _new_blocks(baseline, candidate), tuple(candidate["missed"]))


def _new_blocks(baseline: ReportData, candidate: ReportData) -> tuple[str, ...]:
    known = set(map(_block, baseline["blocked"]))
    return tuple(dict.fromkeys(one for one in map(_block, candidate["blocked"]) if one not in known))


def _block(one: ReportData) -> str:
    return f"{one['method']} {one['target']} ({one['way']}), tried for {one['caller'] or 'nobody'}"


def _by_ref(report: ReportData) -> dict[ResourceRef, ReportData]:
    return {ResourceRef(one["group"], one["kind"], one["namespace"], one["name"]): one for one in report["resources"]}


def _compare_resource(ref: ResourceRef, before: ReportData | None, after: ReportData | None) -> ResourceComparison:
    was, became = ("not looked after" if one is None else str(one["finding"]) for one in (before, after))
    trouble = _trouble(before, after)
    if trouble is not None:
        return ResourceComparison(ref, UpgradeVerdict.BROKEN, (), was, became, trouble)
    looks = [(_changes(before, look), _changes(after, look)) for look in _LOOKS]
    verdict = max((_verdict(*look) for look in looks), key=list(UpgradeVerdict).index)
    if verdict is UpgradeVerdict.SAME:
        # The same plan may be carried out otherwise.
        looks = [(_requests(before, after), _requests(after, before))]
        verdict = UpgradeVerdict.DIFFERENT if looks[0][0].keys() != looks[0][1].keys() else verdict
    fields = dict.fromkeys(path for one, other in looks for path in _fields(one, other))
    return ResourceComparison(ref, verdict, tuple(fields), was, became)


def _trouble(before: ReportData | None, after: ReportData | None) -> str | None:
    """What the candidate cannot do that the baseline could; None where there is nothing of the kind."""
    if after is None:
        return "the candidate does not look after it"
    if before is not None and _same_outcome(before, after):
        return None
    refused: str | None = after.get(_REFUSED)
    return str(after.get("error") or after["finding"]) if after["finding"] in _WRONG else refused


def _same_outcome(before: ReportData, after: ReportData) -> bool:
    return all(before.get(name) == after.get(name) for name in ("finding", "error", _REFUSED))


# Each change of each write, with what it is part of: as text, so that it can be found again.
_Changes: TypeAlias = Mapping[bytes, str]


def _changes(one: ReportData | None, look: str) -> _Changes:
    """What would be written; without a cookie it is the same unless something else is told."""
    plan = None if one is None else one.get(look, one.get("plan"))
    return {} if plan is None else dict(_flat(plan["writes"]))


def _flat(writes: Iterable[ReportData]) -> Iterable[tuple[bytes, str]]:
    for write in writes:
        head = [write["action"], write["name"]]
        if not write["changes"]:
            yield canonical([*head, None]), f"({write['action']})"
        for change in write["changes"]:
            told = [change["path"], "after" in change, change.get("after")]
            yield canonical([*head, *told]), change["path"]


def _requests(one: ReportData | None, other: ReportData | None) -> _Changes:
    """What would be sent, where that is known of both; what is in a body counts one by one."""
    if one is None or other is None or not other.get("requests"):
        return {}
    return {key: told for request in one.get("requests", ()) for key, told in _parts(request)}


def _parts(request: ReportData) -> Iterable[tuple[bytes, str]]:
    head, told = [request["way"], request["method"], request["target"]], f"{request['method']} {request['target']}"
    parts = list(leaf_fields(request["body"]))
    if not parts:
        yield canonical([*head, request["body"]]), told
    for path, value in parts:
        yield canonical([*head, str(path), value]), f"{told}: {path}"


def _verdict(before: _Changes, after: _Changes) -> UpgradeVerdict:
    if before.keys() == after.keys():
        return UpgradeVerdict.SAME
    if after.keys() < before.keys():
        return UpgradeVerdict.FEWER
    return UpgradeVerdict.DIFFERENT if before else UpgradeVerdict.NEW


def _fields(before: _Changes, after: _Changes) -> Iterable[str]:
    """The fields that only one of them writes, or writes so."""
    both = {**before, **after}
    return sorted({both[key] for key in before.keys() ^ after.keys()})


# What a gate does not let pass.
_FAILING: Final = (UpgradeVerdict.DIFFERENT, UpgradeVerdict.NEW, UpgradeVerdict.BROKEN)
_MAX_ROWS: Final = 100


@dataclass(frozen=True, slots=True)
class ReportLabels:
    """How both sides are called."""

    baseline: str
    candidate: str


def junit_report(found: Comparison, names: ReportLabels) -> str:
    """A test for each resource, in a suite for each kind; one fails that is written to otherwise than before."""
    root = Xml.Element("testsuites", name=f"{names.baseline} → {names.candidate}")
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
    """What XML can hold."""
    return "".join(one if one.isprintable() or one == "\n" else "�" for one in text)


def markdown_report(found: Comparison, names: ReportLabels) -> str:
    """The verdict, the counts, and what differs."""
    return "".join(f"{line}\n" for line in _markdown(found, names))


def _markdown(found: Comparison, names: ReportLabels) -> Iterator[str]:
    yield f"# {_cell(names.baseline)} → {_cell(names.candidate)}: {found.worst.value}"
    yield from ("", "| verdict | resources |", "|---|---|")
    yield from (f"| {one.value} | {found.counts[one]} |" for one in UpgradeVerdict if one in found.counts)
    if found.one_time:
        yield from ("", f"{found.one_time} are looked at closely once, and nothing is written.")
    told = [one for one in found.each if one.verdict is not UpgradeVerdict.SAME]
    if told:
        yield from ("", "| resource | verdict | fields | before | after |", "|---|---|---|---|---|")
        yield from (_row(one) for one in told[:_MAX_ROWS])
    if len(told) > _MAX_ROWS:
        yield from ("", f"… and {len(told) - _MAX_ROWS} more.")
    yield from _list("Blocked", found.blocked)
    yield from _list("Not recorded", found.missed)


def _list(title: str, items: tuple[str, ...]) -> Iterator[str]:
    if items:
        yield from ("", f"## {title}", "", *(f"* {_cell(one)}" for one in items))


def _row(one: ResourceComparison) -> str:
    fields = _cell(one.trouble) or ", ".join(f"`{path}`" for path in one.fields)
    return f"| {_cell(str(one.ref))} | {one.verdict.value} | {fields} | {one.baseline} | {one.candidate} |"


def _why(one: ResourceComparison) -> str:
    return f"{one.verdict.value}: {one.trouble or ', '.join(one.fields)}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
