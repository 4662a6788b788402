"""RBAC of an installation: least privilege for the controller, and aggregated roles for users of our kinds."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.deployment.installation import NAME, Installation, cluster_metadata, namespaced_metadata
from setpoint.engine.owner import Owner

_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "update", "delete")
_EDIT: Final = ("create", "update", "patch", "delete", "deletecollection")


class GroupResource(NamedTuple):
    """A kind in RBAC rules: `sqlinstances` of `sql.cnrm.cloud.google.com`."""

    group: str
    plural: str


def resources_of(definitions: Iterable[JsonObject]) -> tuple[GroupResource, ...]:
    """The kinds that these CustomResourceDefinitions define, sorted."""
    return tuple(
        sorted(
            GroupResource(text_at(one, "spec", "group"), text_at(one, "spec", "names", "plural")) for one in definitions
        )
    )


class OwnerAccess(NamedTuple):
    """What owners need access to: their own kinds, those of their children, and those that they read."""

    owners: tuple[GroupResource, ...] = ()
    children: tuple[GroupResource, ...] = ()
    read: tuple[GroupResource, ...] = ()
    # Read as well: cluster-scoped kinds.
    cluster_scoped: tuple[GroupResource, ...] = ()


NO_OWNERS: Final = OwnerAccess()
_SECRETS: Final = GroupResource("", "secrets")


def access_of_owners(owners: Iterable[Owner], definitions: Iterable[JsonObject]) -> OwnerAccess:
    """What these owners need access to; Secrets are read in any case."""
    found = tuple(owners)
    plurals = {(text_at(one, "spec", "group"), text_at(one, "spec", "names", "kind")): one for one in definitions}
    own = resources_of(plurals[owner.group, owner.name] for owner in found)
    made = {GroupResource(one.group, one.plural) for owner in found for one in owner.makes}
    read = {
        one for owner in found for one in owner.reads if GroupResource(one.group, one.plural) not in {*made, _SECRETS}
    }
    inside, outside = (
        tuple(sorted(GroupResource(one.group, one.plural) for one in read if one.is_namespaced is wanted))
        for wanted in (True, False)
    )
    return OwnerAccess(own, tuple(sorted(made)), inside, outside)


# --- The controller ---------------------------------------------------------------------------------------------------


def controller_rbac(
    installation: Installation, kinds: Sequence[GroupResource], access: OwnerAccess = NO_OWNERS
) -> list[JsonObject]:
    """Roles and bindings of the controller: for resources in all namespaces or one, and for leases in its own."""
    watched = installation.watch_namespace
    kind, metadata = ("ClusterRole", cluster_metadata()) if watched is None else ("Role", namespaced_metadata(watched))
    own = namespaced_metadata(installation.namespace, f"{NAME}-leases")
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": installation.namespace}
    rules = [
        *resource_rules(kinds),
        *(namespace_rules() if watched is None else ()),
        *owned_object_rules(access),
        *(cluster_scoped_rules(access) if watched is None else ()),
    ]
    return [
        _role(kind, metadata, rules),
        _binding(kind, metadata, account),
        _role("Role", own, lease_rules()),
        _binding("Role", own, account),
    ]


def resource_rules(kinds: Sequence[GroupResource]) -> list[JsonObject]:
    """Specs are never written: patch is for finalizers and annotations; the status is a subresource."""
    return [
        *(_rule(group, plurals, (*_READ, "patch")) for group, plurals in _by_group(kinds)),
        *(_rule(group, [f"{one}/status" for one in plurals], ("patch",)) for group, plurals in _by_group(kinds)),
        _rule("", ["secrets"], _READ),
        _rule("", ["events"], ("get", "create", "patch")),
        {**_rule("", ["serviceaccounts"], ("get", "impersonate")), "resourceNames": ["setpoint"]},
        # Its annotations say which Google project its resources are in. In a Role: its own Namespace alone.
        _rule("", ["namespaces"], ("get",)),
    ]


def namespace_rules() -> list[JsonObject]:
    """Namespaces are watched by a controller for the whole cluster: their metadata alone."""
    return [_rule("", ["namespaces"], ("list", "watch"))]


def owned_object_rules(access: OwnerAccess) -> list[JsonObject]:
    """Children are written. Some clusters require permission on the finalizers of an owner to refer to it."""
    return [
        *(
            _rule(group, [f"{one}/finalizers" for one in plurals], ("update",))
            for group, plurals in _by_group(access.owners)
        ),
        *(_rule(group, plurals, (*_READ, *_WRITE)) for group, plurals in _by_group(access.children)),
        *(_rule(group, plurals, _READ) for group, plurals in _by_group(access.read)),
    ]


def cluster_scoped_rules(access: OwnerAccess) -> list[JsonObject]:
    """Cluster-scoped kinds: a Role of one namespace cannot grant access to them."""
    return [_rule(group, plurals, _READ) for group, plurals in _by_group(access.cluster_scoped)]


def lease_rules() -> list[JsonObject]:
    """Leases for leader election and sharding."""
    return [_rule("coordination.k8s.io", ["leases"], ("get", "list", "create", "update"))]


# --- Users ------------------------------------------------------------------------------------------------------------


def user_rbac(kinds: Sequence[GroupResource]) -> list[JsonObject]:
    """Roles that aggregate our kinds to the cluster's own roles `view` and `edit`, and thereby `admin`."""
    statuses = [_rule(group, [f"{one}/status" for one in plurals], ("get",)) for group, plurals in _by_group(kinds)]
    return [
        _aggregated_role("view", [*(_rule(group, plurals, _READ) for group, plurals in _by_group(kinds)), *statuses]),
        _aggregated_role("edit", [_rule(group, plurals, _EDIT) for group, plurals in _by_group(kinds)]),
    ]


def _aggregated_role(role: str, rules: list[JsonObject]) -> JsonObject:
    return _role("ClusterRole", cluster_metadata(f"{NAME}-{role}", {f"{_RBAC}/aggregate-to-{role}": "true"}), rules)


# --- Objects ----------------------------------------------------------------------------------------------------------


def _by_group(kinds: Iterable[GroupResource]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(kind.plural)
    return list(groups.items())


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> JsonObject:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _role(kind: str, metadata: dict[str, Json], rules: list[JsonObject]) -> JsonObject:
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def _binding(kind: str, metadata: dict[str, Json], account: JsonObject) -> JsonObject:
    """Binds the role of that kind and name to `account`."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
        "subjects": [account],
    }
