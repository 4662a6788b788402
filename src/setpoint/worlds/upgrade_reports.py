"""A comparison for others to read: JUnit for CI systems, Markdown for a pull request."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from xml.etree import ElementTree as Xml

from setpoint.worlds.comparison import Compared, Comparison, Verdict

# What a gate does not let pass.
_STOPPED: Final = (Verdict.DIFFERENT, Verdict.NEW, Verdict.BROKEN)
_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Names:
    """How both sides are called."""

    baseline: str
    candidate: str


def junit(found: Comparison, names: Names) -> str:
    """A test for each resource, in a suite for each kind; one fails that is written to otherwise than before."""
    root = Xml.Element("testsuites", name=f"{names.baseline} → {names.candidate}")
    by_kind = sorted(found.each, key=lambda one: (one.ref.kind, one.ref))
    for kind, some in groupby(by_kind, key=lambda one: one.ref.kind):
        _suite(root, kind, list(some))
    if found.blocked or found.missed:
        _suite(root, "candidate", [])
        for text in (*(f"blocked: {one}" for one in found.blocked), *(f"not recorded: {one}" for one in found.missed)):
            case = Xml.SubElement(root[-1], "testcase", classname="candidate", name=_printable(text))
            Xml.SubElement(case, "failure", message=_printable(text), type=Verdict.BROKEN.value)
        root[-1].set("tests", str(len(root[-1])))
        root[-1].set("failures", str(len(root[-1])))
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _suite(root: Xml.Element, kind: str, some: list[Compared]) -> None:
    failures = sum(one.verdict in _STOPPED for one in some)
    suite = Xml.SubElement(root, "testsuite", name=kind, tests=str(len(some)), failures=str(failures))
    for one in some:
        case = Xml.SubElement(suite, "testcase", classname=kind, name=_printable(f"{one.ref.namespace}/{one.ref.name}"))
        if one.verdict in _STOPPED:
            failure = Xml.SubElement(case, "failure", message=_printable(_why(one)), type=one.verdict.value)
            failure.text = _printable(
                "\n".join((f"{one.baseline} → {one.candidate}", *one.fields, one.trouble)).strip()
            )


def _printable(text: str) -> str:
    """What XML can hold."""
    return "".join(one if one.isprintable() or one == "\n" else "�" for one in text)


def markdown(found: Comparison, names: Names) -> str:
    """The verdict, the counts, and what differs."""
    return "".join(f"{line}\n" for line in _markdown(found, names))


def _markdown(found: Comparison, names: Names) -> Iterator[str]:
    yield f"# {_cell(names.baseline)} → {_cell(names.candidate)}: {found.worst.value}"
    yield from ("", "| verdict | resources |", "|---|---|")
    yield from (f"| {one.value} | {found.counts[one]} |" for one in Verdict if one in found.counts)
    if found.one_time:
        yield from ("", f"{found.one_time} are looked at closely once, and nothing is written.")
    told = [one for one in found.each if one.verdict is not Verdict.SAME]
    if told:
        yield from ("", "| resource | verdict | fields | before | after |", "|---|---|---|---|---|")
        yield from (_row(one) for one in told[:_MOST])
    if len(told) > _MOST:
        yield from ("", f"… and {len(told) - _MOST} more.")
    yield from _list("Blocked", found.blocked)
    yield from _list("Not recorded", found.missed)


def _list(title: str, items: tuple[str, ...]) -> Iterator[str]:
    if items:
        yield from ("", f"## {title}", "", *(f"* {_cell(one)}" for one in items))


def _row(one: Compared) -> str:
    fields = _cell(one.trouble) or ", ".join(f"`{path}`" for path in one.fields)
    return f"| {_cell(str(one.ref))} | {one.verdict.value} | {fields} | {one.baseline} | {one.candidate} |"


def _why(one: Compared) -> str:
    return f"{one.verdict.value}: {one.trouble or ', '.join(one.fields)}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
