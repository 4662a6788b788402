"""Grants: what a policy consists of, and how a policy is changed without touching those of other writers.

A grant is one member with one role under one condition. A policy groups them into bindings, of which several may have
the same role and condition; order means nothing.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from setpoint.core.values.canonical import digest

# Members that are named by an e-mail address or a domain, which IAM compares and shows in lower case.
_LOWER_CASE: Final = re.compile(r"(?:deleted:)?(?:user|group|serviceAccount|domain):[^\[]*")
# Members of a policy that the service alone sets.
_OUTPUTS: Final = ("kind", "resourceId")
_CONDITION: Final = ("title", "description", "expression")
# The version of policies that can have conditions: sent always, because a policy may have some that are not ours.
POLICY_VERSION: Final = 3


class GrantCondition(NamedTuple):
    """When a grant holds. Two conditions are the same when all their texts are."""

    title: str = ""
    description: str = ""
    expression: str = ""

    @staticmethod
    def of(value: object) -> "GrantCondition | None":
        """The condition in a binding; None for none."""
        if not isinstance(value, Mapping):
            return None
        return GrantCondition(*(str(value.get(name) or "") for name in _CONDITION))

    @property
    def body(self) -> dict[str, Any]:
        """The condition as the API has it."""
        return {name: text for name, text in zip(_CONDITION, self, strict=True) if text}


class Grant(NamedTuple):
    """A member with a role."""

    role: str
    member: str
    condition: GrantCondition | None = None

    @property
    def condition_digest(self) -> str:
        """A short name of the condition; empty for none."""
        return "" if self.condition is None else digest(self.condition.body)


def normal_member(member: str) -> str:
    """The member as IAM shows it: e-mail addresses and domains in lower case."""
    return _LOWER_CASE.sub(lambda found: _lowered(found[0]), member, count=1)


def _lowered(text: str) -> str:
    *prefixes, name = text.split(":", 2) if text.startswith("deleted:") else text.split(":", 1)
    return ":".join((*prefixes, name.lower()))


def grants_in(bindings: Iterable[Mapping[str, Any]]) -> frozenset[Grant]:
    """The grants of a policy's bindings."""
    return frozenset(
        Grant(str(one.get("role") or ""), normal_member(str(member)), GrantCondition.of(one.get("condition")))
        for one in bindings
        for member in one.get("members") or ()
    )


def bindings_of(grants: Collection[Grant]) -> list[dict[str, Any]]:
    """The bindings of grants in their one order: by role and condition, members by name."""
    grouped: dict[tuple[str, GrantCondition | None], list[str]] = {}
    for one in sorted(grants, key=lambda grant: (grant.role, grant.condition or (), grant.member)):
        grouped.setdefault((one.role, one.condition), []).append(one.member)
    return [
        {"role": role, "members": members, **({} if condition is None else {"condition": condition.body})}
        for (role, condition), members in grouped.items()
    ]


def changed_policy(policy: Mapping[str, Any], add: Collection[Grant], remove: Collection[Grant]) -> dict[str, Any]:
    """The policy to be sent: with the grants of `add`, without those of `remove`, and otherwise as it was."""
    bindings: list[dict[str, Any]] = []
    gone, missing = set(remove) - set(add), dict.fromkeys(add)
    for binding in policy.get("bindings") or ():
        role, condition = str(binding.get("role") or ""), GrantCondition.of(binding.get("condition"))
        kept = []
        for member in binding.get("members") or ():
            grant = Grant(role, normal_member(str(member)), condition)
            missing.pop(grant, None)
            kept += [] if grant in gone else [member]
        bindings += [{**binding, "members": kept}] if kept else []
    _join(bindings, missing)
    found = {name: value for name, value in policy.items() if name not in _OUTPUTS}
    return {**found, "bindings": bindings, "version": POLICY_VERSION}


def _join(bindings: list[dict[str, Any]], missing: Collection[Grant]) -> None:
    """Adds grants to the bindings of the same role and condition, or in new ones."""
    known = {(str(one.get("role") or ""), GrantCondition.of(one.get("condition"))): one for one in bindings}
    for one in bindings_of(missing):
        key = (one["role"], GrantCondition.of(one.get("condition")))
        if key in known:
            known[key]["members"] = [*known[key]["members"], *one["members"]]
        else:
            bindings.append(one)
