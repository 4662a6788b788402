"""Rights of accounts: as an API server reports them, and as the tables of the pages have them."""

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.deployment.conftest import Kubectl
from tests.deployment.eventually import once

OPERATOR_PAGE: Final = Path("docs/how-to/run-on-kubernetes.md")
TENANT_PAGE: Final = Path("docs/how-to/set-up-a-tenant.md")
EVERYWHERE, HOME = "everywhere", "its own namespace"
_TABLE: Final = re.compile(r"^\| API group \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_CODE: Final = re.compile(r"`([^`]+)`")
_REVIEW: Final = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}


class Right(NamedTuple):
    """A right on a resource: on all objects, or on those of one name."""

    group: str
    resource: str
    verb: str
    name: str = ""


class TableRow(NamedTuple):
    """A row of a table: its rights, and the words of the column that says where or for which kinds they are."""

    rights: frozenset[Right]
    words: tuple[str, ...]


def documented(page: Path) -> list[list[TableRow]]:
    """The tables of a page, in order."""
    tables = _TABLE.findall(page.read_text(encoding="utf-8"))
    return [[_row(line) for line in table.splitlines()] for table in tables]


def rights_in(rows: Collection[TableRow], *words: str) -> set[Right]:
    """The rights of the rows with one of these words."""
    return {right for row in rows if set(row.words) & set(words) for right in row.rights}


def _row(line: str) -> TableRow:
    group, resources, names, verbs, words, _ = (cell.strip() for cell in line.strip("|").split("|"))
    plain = "" if group == "core" else group.strip("`")
    return TableRow(
        frozenset(
            Right(plain, resource, verb, name)
            for resource in _CODE.findall(resources)
            for verb in verbs.split(", ")
            for name in _CODE.findall(names) or [""]
        ),
        tuple(words.split(", ")),
    )


class ReportedRights:
    """The rights of users, from the API server."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def once_granted(self, user: str, namespace: str, wanted: set[Right]) -> set[Right]:
        """The rights of `user` there, once they are `wanted`."""
        return once(lambda: self.of(user, namespace), wanted)

    def of(self, user: str, namespace: str) -> set[Right]:
        """The rights of `user` in `namespace` beyond those of every user."""
        baseline = "system:serviceaccount:default:unbound"
        return self._all(user, namespace) - self._all(baseline, namespace)

    def _all(self, user: str, namespace: str) -> set[Right]:
        question = json.dumps({**_REVIEW, "spec": {"namespace": namespace}})
        answer = self._kubectl("create", f"--as={user}", "--validate=false", "-o", "json", "-f", "-", stdin=question)
        return {right for rule in json.loads(answer)["status"]["resourceRules"] for right in _rights_of(rule)}


def _rights_of(rule: dict[str, list[str]]) -> Iterator[Right]:
    for group in rule.get("apiGroups", ()):
        for resource in rule.get("resources", ()):
            for name in rule.get("resourceNames") or [""]:
                yield from (Right(group, resource, verb, name) for verb in rule["verbs"])
