"""Two reports on the same world, plan by plan: whether the second would write anything that the first would not."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from setpoint.clients.read_only import leaves
from setpoint.core.canonical import canonical
from setpoint.core.values import Json
from setpoint.engine.previews import Finding
from setpoint.engine.resource import ResourceRef

Report: TypeAlias = Mapping[str, Any]
# The looks that are compared: what the next step would do, and what it would do without a cookie.
_LOOKS: Final = ("plan", "withoutCookie")
# Why there is no plan without a cookie, where there is none.
_REFUSED: Final = "withoutCookieError"
# What is wrong with a look, whatever it would write.
_WRONG: Final = (Finding.FAILED, Finding.UNSETTLED)


class Verdict(StrEnum):
    """How a resource fares with the candidate, the quietest first."""

    SAME = "same"
    FEWER = "fewer writes"
    DIFFERENT = "different writes"
    NEW = "new writes"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Compared:
    """One resource: the verdict, the fields that make it so, and what each side found."""

    ref: ResourceRef
    verdict: Verdict
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

    each: tuple[Compared, ...]
    blocked: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many there are of each verdict."""
        return Counter(one.verdict for one in self.each)

    @property
    def one_time(self) -> int:
        """How many need one close look though nothing is to be written."""
        return sum(one.candidate == Finding.ONE_TIME != one.baseline for one in self.each)

    @property
    def worst(self) -> Verdict:
        """The loudest verdict; whatever is blocked or missed is broken."""
        found = {one.verdict for one in self.each}
        if self.blocked or self.missed:
            return Verdict.BROKEN
        return max(found, key=list(Verdict).index, default=Verdict.SAME)

    def to_data(self) -> dict[str, Json]:
        """The report as plain JSON: those that are the same are only counted."""
        return {
            "verdict": self.worst.value,
            "summary": {one.value: self.counts[one] for one in Verdict if one in self.counts},
            "oneTime": self.one_time,
            "resources": [one.to_data() for one in self.each if one.verdict is not Verdict.SAME],
            "blocked": list(self.blocked),
            "missed": list(self.missed),
        }


def compared(baseline: Report, candidate: Report) -> Comparison:
    """The verdict on the candidate. A resource that only one of them looks after counts as it is."""
    before, after = _by_ref(baseline), _by_ref(candidate)
    each = (_compared(ref, before.get(ref), after.get(ref)) for ref in sorted({*before, *after}))
    return Comparison(tuple(each), _new_blocks(baseline, candidate), tuple(candidate["missed"]))


def _new_blocks(baseline: Report, candidate: Report) -> tuple[str, ...]:
    known = set(map(_block, baseline["blocked"]))
    return tuple(dict.fromkeys(one for one in map(_block, candidate["blocked"]) if one not in known))


def _block(one: Report) -> str:
    return f"{one['method']} {one['target']} ({one['way']}), tried for {one['caller'] or 'nobody'}"


def _by_ref(report: Report) -> dict[ResourceRef, Report]:
    return {ResourceRef(one["group"], one["kind"], one["namespace"], one["name"]): one for one in report["resources"]}


def _compared(ref: ResourceRef, before: Report | None, after: Report | None) -> Compared:
    was, became = ("not looked after" if one is None else str(one["finding"]) for one in (before, after))
    trouble = _trouble(before, after)
    if trouble is not None:
        return Compared(ref, Verdict.BROKEN, (), was, became, trouble)
    looks = [(_changes(before, look), _changes(after, look)) for look in _LOOKS]
    verdict = max((_verdict(*look) for look in looks), key=list(Verdict).index)
    if verdict is Verdict.SAME:
        # The same plan may be carried out otherwise.
        looks = [(_requests(before, after), _requests(after, before))]
        verdict = Verdict.DIFFERENT if looks[0][0].keys() != looks[0][1].keys() else verdict
    fields = dict.fromkeys(path for one, other in looks for path in _fields(one, other))
    return Compared(ref, verdict, tuple(fields), was, became)


def _trouble(before: Report | None, after: Report | None) -> str | None:
    """What the candidate cannot do that the baseline could; None where there is nothing of the kind."""
    if after is None:
        return "the candidate does not look after it"
    if before is not None and _says_the_same(before, after):
        return None
    refused: str | None = after.get(_REFUSED)
    return str(after.get("error") or after["finding"]) if after["finding"] in _WRONG else refused


def _says_the_same(before: Report, after: Report) -> bool:
    return all(before.get(name) == after.get(name) for name in ("finding", "error", _REFUSED))


# Each change of each write, with what it is part of: as text, so that it can be found again.
_Changes: TypeAlias = Mapping[bytes, str]


def _changes(one: Report | None, look: str) -> _Changes:
    """What would be written; without a cookie it is the same unless something else is told."""
    plan = None if one is None else one.get(look, one.get("plan"))
    return {} if plan is None else dict(_flat(plan["writes"]))


def _flat(writes: Iterable[Report]) -> Iterable[tuple[bytes, str]]:
    for write in writes:
        head = [write["action"], write["name"]]
        if not write["changes"]:
            yield canonical([*head, None]), f"({write['action']})"
        for change in write["changes"]:
            told = [change["path"], "after" in change, change.get("after")]
            yield canonical([*head, *told]), change["path"]


def _requests(one: Report | None, other: Report | None) -> _Changes:
    """What would be sent, where that is known of both; what is in a body counts one by one."""
    if one is None or other is None or not other.get("requests"):
        return {}
    return {key: told for request in one.get("requests", ()) for key, told in _parts(request)}


def _parts(request: Report) -> Iterable[tuple[bytes, str]]:
    head, told = [request["way"], request["method"], request["target"]], f"{request['method']} {request['target']}"
    parts = list(leaves(request["body"]))
    if not parts:
        yield canonical([*head, request["body"]]), told
    for path, value in parts:
        yield canonical([*head, str(path), value]), f"{told}: {path}"


def _verdict(before: _Changes, after: _Changes) -> Verdict:
    if before.keys() == after.keys():
        return Verdict.SAME
    if after.keys() < before.keys():
        return Verdict.FEWER
    return Verdict.DIFFERENT if before else Verdict.NEW


def _fields(before: _Changes, after: _Changes) -> Iterable[str]:
    """The fields that only one of them writes, or writes so."""
    both = {**before, **after}
    return sorted({both[key] for key in before.keys() ^ after.keys()})
