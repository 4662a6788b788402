"""Who may do what: the controller what it does and no more, people what comes with a resource of theirs."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from setpoint.core.kubernetes import text_at
from setpoint.core.values import Json
from setpoint.deployment.installation import Installation
from setpoint.deployment.naming import NAME, in_namespace, of_cluster
from setpoint.engine.resource import Tree

_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list", "watch")
_EDIT: Final = ("create", "update", "patch", "delete", "deletecollection")


class Served(NamedTuple):
    """A kind as an API server names it: `sqlinstances` of `sql.cnrm.cloud.google.com`."""

    group: str
    plural: str


def served_by(definitions: Iterable[Tree]) -> tuple[Served, ...]:
    """The kinds that these CustomResourceDefinitions bring, in order."""
    return tuple(
        sorted(Served(text_at(one, "spec", "group"), text_at(one, "spec", "names", "plural")) for one in definitions)
    )


# --- The controller ---------------------------------------------------------------------------------------------------


def of_controller(installation: Installation, kinds: Sequence[Served]) -> list[Tree]:
    """Roles and bindings: for resources everywhere or in one namespace, and for leases in the controller's own."""
    watched = installation.watch_namespace
    kind, metadata = ("ClusterRole", of_cluster()) if watched is None else ("Role", in_namespace(watched))
    own = in_namespace(installation.namespace, f"{NAME}-leases")
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": installation.namespace}
    return [
        _role(kind, metadata, on_resources(kinds)),
        _binding(kind, metadata, account),
        _role("Role", own, on_leases()),
        _binding("Role", own, account),
    ]


def on_resources(kinds: Sequence[Served]) -> list[Tree]:
    """Specs are read and never written: a patch is for finalizers and annotations, and the status is apart."""
    return [
        *(_rule(group, plurals, (*_READ, "patch")) for group, plurals in _by_group(kinds)),
        *(_rule(group, [f"{one}/status" for one in plurals], ("patch",)) for group, plurals in _by_group(kinds)),
        _rule("", ["secrets"], _READ),
        _rule("", ["events"], ("get", "create", "patch")),
    ]


def on_leases() -> list[Tree]:
    """By leases the pods divide the work among themselves."""
    return [_rule("coordination.k8s.io", ["leases"], ("get", "list", "create", "update"))]


# --- People -----------------------------------------------------------------------------------------------------------


def of_people(kinds: Sequence[Served]) -> list[Tree]:
    """What the cluster's own roles `view` and `edit`, and with them `admin`, get to say about our kinds."""
    statuses = [_rule(group, [f"{one}/status" for one in plurals], ("get",)) for group, plurals in _by_group(kinds)]
    return [
        _for_people("view", [*(_rule(group, plurals, _READ) for group, plurals in _by_group(kinds)), *statuses]),
        _for_people("edit", [_rule(group, plurals, _EDIT) for group, plurals in _by_group(kinds)]),
    ]


def _for_people(role: str, rules: list[Tree]) -> Tree:
    return _role("ClusterRole", of_cluster(f"{NAME}-{role}", {f"{_RBAC}/aggregate-to-{role}": "true"}), rules)


# --- Objects ----------------------------------------------------------------------------------------------------------


def _by_group(kinds: Iterable[Served]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(kind.plural)
    return list(groups.items())


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Tree:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _role(kind: str, metadata: dict[str, Json], rules: list[Tree]) -> Tree:
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def _binding(kind: str, metadata: dict[str, Json], account: Tree) -> Tree:
    """Gives the role of that kind and name to `account`."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
        "subjects": [account],
    }
