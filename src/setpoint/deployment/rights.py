"""Who may do what: the controller what it does and no more, people what comes with a resource of theirs."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from setpoint.core.kubernetes import text_at
from setpoint.core.values import Json
from setpoint.deployment.installation import Installation
from setpoint.deployment.naming import NAME, in_namespace, of_cluster
from setpoint.engine.owner import Owner
from setpoint.engine.resource import Tree

_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list", "watch")
_MAKE: Final = ("create", "update", "delete")
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


class Objects(NamedTuple):
    """What owners deal with: the kinds of the owners themselves, of what they make, and of what they read."""

    owners: tuple[Served, ...] = ()
    made: tuple[Served, ...] = ()
    read: tuple[Served, ...] = ()
    # Of those that are read: in no namespace.
    of_cluster: tuple[Served, ...] = ()


NO_OBJECTS: Final = Objects()
_SECRETS: Final = Served("", "secrets")


def objects_of(owners: Iterable[Owner], definitions: Iterable[Tree]) -> Objects:
    """What these owners deal with; Secrets are read in any case."""
    found = tuple(owners)
    plurals = {(text_at(one, "spec", "group"), text_at(one, "spec", "names", "kind")): one for one in definitions}
    own = served_by(plurals[owner.group, owner.name] for owner in found)
    made = {Served(one.group, one.plural) for owner in found for one in owner.makes}
    read = {one for owner in found for one in owner.reads if Served(one.group, one.plural) not in {*made, _SECRETS}}
    inside, outside = (
        tuple(sorted(Served(one.group, one.plural) for one in read if one.is_namespaced is wanted))
        for wanted in (True, False)
    )
    return Objects(own, tuple(sorted(made)), inside, outside)


# --- The controller ---------------------------------------------------------------------------------------------------


def of_controller(installation: Installation, kinds: Sequence[Served], objects: Objects = NO_OBJECTS) -> list[Tree]:
    """Roles and bindings: for resources everywhere or in one namespace, and for leases in the controller's own."""
    watched = installation.watch_namespace
    kind, metadata = ("ClusterRole", of_cluster()) if watched is None else ("Role", in_namespace(watched))
    own = in_namespace(installation.namespace, f"{NAME}-leases")
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": installation.namespace}
    rules = [*on_resources(kinds), *on_objects(objects), *(on_cluster(objects) if watched is None else ())]
    return [
        _role(kind, metadata, rules),
        _binding(kind, metadata, account),
        _role("Role", own, on_leases()),
        _binding("Role", own, account),
    ]


def on_resources(kinds: Sequence[Served]) -> list[Tree]:
    """Specs of authors are read, never written: a patch is for finalizers and annotations, and the status is apart."""
    return [
        *(_rule(group, plurals, (*_READ, "patch")) for group, plurals in _by_group(kinds)),
        *(_rule(group, [f"{one}/status" for one in plurals], ("patch",)) for group, plurals in _by_group(kinds)),
        _rule("", ["secrets"], _READ),
        _rule("", ["events"], ("get", "create", "patch")),
    ]


def on_objects(objects: Objects) -> list[Tree]:
    """What owners make is written. A cluster may ask whoever names an owner for a right on its finalizers."""
    return [
        *(
            _rule(group, [f"{one}/finalizers" for one in plurals], ("update",))
            for group, plurals in _by_group(objects.owners)
        ),
        *(_rule(group, plurals, (*_READ, *_MAKE)) for group, plurals in _by_group(objects.made)),
        *(_rule(group, plurals, _READ) for group, plurals in _by_group(objects.read)),
    ]


def on_cluster(objects: Objects) -> list[Tree]:
    """What is in no namespace: nobody can have a right to it in one alone."""
    return [_rule(group, plurals, _READ) for group, plurals in _by_group(objects.of_cluster)]


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
