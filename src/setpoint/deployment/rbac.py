"""RBAC of an installation: least privilege for the controller, and aggregated roles for users of our kinds.

The controller acts for tenants by impersonation (see `tenants`), so that its own rights are few: it writes the status
and the finalizers of our kinds, events and leases, and nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from setpoint.core.schema.annotations import CLAIM
from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.deployment.installation import NAME, Installation, cluster_metadata, namespaced_metadata
from setpoint.engine.capabilities import SupportsGeneratedSecret
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import ObjectKind, Owner, refers_to_secrets
from setpoint.engine.state import COOKIE_ANNOTATION
from setpoint.engine.tenancy.tenants import DEFAULT_SERVICE_ACCOUNT

_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list", "watch")
_WATCH: Final = ("list", "watch")
_EDIT: Final = ("create", "update", "patch", "delete", "deletecollection")


class GroupResource(NamedTuple):
    """A kind in RBAC rules: `sqlinstances` of `sql.cnrm.cloud.google.com`."""

    group: str
    plural: str


SECRETS: Final = GroupResource("", "secrets")
KUBERNETES_OBJECTS: Final = GroupResource("setpoint.dev", "kubernetesobjects")
# What lets other namespaces refer to resources: read by the controller, and reconciled by none.
GRANTS: Final = GroupResource("setpoint.dev", "referencegrants")
# The cluster's own role whose users may write a kind, where that is not `edit`; empty for none of them.
_WRITING_ROLES: Final[Mapping[GroupResource, str]] = {KUBERNETES_OBJECTS: "", GRANTS: "admin"}
# Those that are installed, with or without kinds: an earlier installation may have given them some.
WRITING_ROLES: Final = ("edit", *sorted({*_WRITING_ROLES.values()} - {"", "edit"}))


def resource_of(definition: JsonObject) -> GroupResource:
    """The kind that this CustomResourceDefinition defines."""
    return GroupResource(text_at(definition, "spec", "group"), text_at(definition, "spec", "names", "plural"))


def resources_of(definitions: Iterable[JsonObject]) -> tuple[GroupResource, ...]:
    """The kinds that these CustomResourceDefinitions define, sorted, without the grants."""
    return tuple(sorted({*map(resource_of, definitions)} - {GRANTS}))


class KindAccess(NamedTuple):
    """What handling these kinds takes access to, besides the kinds: what owners make and read, and Secrets."""

    kinds: tuple[GroupResource, ...]
    owners: tuple[GroupResource, ...] = ()
    children: tuple[GroupResource, ...] = ()
    # Read and not made: namespaced kinds, then cluster-scoped ones.
    read: tuple[GroupResource, ...] = ()
    cluster_scoped: tuple[GroupResource, ...] = ()

    @property
    def watched(self) -> tuple[GroupResource, ...]:
        """The namespaced kinds that are watched besides ours: changes of what is made and read are noticed."""
        return tuple(sorted({*self.children, *self.read} - {*self.kinds}))


def access_of(types: Iterable[ResourceType], definitions: Iterable[JsonObject]) -> KindAccess:
    """The access that handling `types` takes; `definitions` are theirs."""
    found, defined = tuple(types), {resource_of(one): text_at(one, "spec", "names", "kind") for one in definitions}
    owners = [one for one in found if isinstance(one, Owner)]
    keepers = [one for one in found if isinstance(one, SupportsGeneratedSecret)]
    names = {(one.group, one.name) for one in (*owners, *keepers)}
    made = {_resource(one) for owner in owners for one in owner.makes} | ({SECRETS} if keepers else set())
    reads = {one for owner in owners for one in owner.reads}
    read = {_resource(one) for one in reads if one.is_namespaced}
    if any(map(refers_to_secrets, found)):
        read.add(SECRETS)
    return KindAccess(
        tuple(sorted(defined)),
        tuple(sorted(one for one, kind in defined.items() if (one.group, kind) in names)),
        tuple(sorted(made)),
        tuple(sorted(read - made)),
        tuple(sorted(_resource(one) for one in reads if not one.is_namespaced)),
    )


def _resource(kind: ObjectKind) -> GroupResource:
    return GroupResource(kind.group, kind.plural)


# --- The controller ---------------------------------------------------------------------------------------------------


def controller_rbac(installation: Installation, access: KindAccess) -> list[JsonObject]:
    """Roles and bindings of the controller: for resources in all namespaces or one, and for leases in its own."""
    watched = installation.watch_namespace
    kind, metadata = ("ClusterRole", cluster_metadata()) if watched is None else ("Role", namespaced_metadata(watched))
    own = namespaced_metadata(installation.namespace, f"{NAME}-leases")
    account = {"kind": "ServiceAccount", "name": installation.account, "namespace": installation.namespace}
    rules = [
        *resource_rules(access.kinds),
        *tenant_rules(),
        namespace_rule(everywhere=watched is None),
        *watch_rules(access.watched),
        *(cluster_scoped_rules(access.cluster_scoped) if watched is None else ()),
        *(review_rules() if installation.dashboard else ()),
    ]
    return [
        role(kind, metadata, rules),
        binding(kind, metadata, account),
        role("Role", own, lease_rules()),
        binding("Role", own, account),
    ]


def resource_rules(kinds: Sequence[GroupResource]) -> list[JsonObject]:
    """Specs are never written: patch is for finalizers and annotations; the status is a subresource."""
    return [
        *(rule(group, plurals, (*_READ, "patch")) for group, plurals in by_group(kinds)),
        *(rule(group, [f"{one}/status" for one in plurals], ("patch",)) for group, plurals in by_group(kinds)),
    ]


def tenant_rules() -> list[JsonObject]:
    """Grants, events, and the right to act as the account of a namespace, which has this name in each."""
    return [
        rule(GRANTS.group, [GRANTS.plural], _READ),
        rule("", ["events"], ("get", "create", "patch")),
        impersonation_rule(DEFAULT_SERVICE_ACCOUNT),
    ]


def impersonation_rule(account: str) -> JsonObject:
    """To act as a ServiceAccount of this name, and to see whether it is there."""
    return {**rule("", ["serviceaccounts"], ("get", "impersonate")), "resourceNames": [account]}


def namespace_rule(*, everywhere: bool) -> JsonObject:
    """To read what an administrator wrote on a Namespace: a Role of one namespace covers `get` of that one."""
    return rule("", ["namespaces"], _READ if everywhere else ("get",))


def watch_rules(kinds: Sequence[GroupResource]) -> list[JsonObject]:
    """Changes are noticed by metadata; what is in an object is read, and written, on behalf of its tenant."""
    return [rule(group, plurals, _WATCH) for group, plurals in by_group(kinds)]


def cluster_scoped_rules(kinds: Sequence[GroupResource]) -> list[JsonObject]:
    """Cluster-scoped kinds, which belong to no tenant: a Role of one namespace cannot grant access to them."""
    return [rule(group, plurals, _READ) for group, plurals in by_group(kinds)]


def review_rules() -> list[JsonObject]:
    """To ask the cluster which user a token is of, and what that user may list: for the dashboard."""
    return [
        rule("authentication.k8s.io", ["tokenreviews"], ("create",)),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ("create",)),
    ]


def lease_rules() -> list[JsonObject]:
    """Leases for leader election and sharding."""
    return [rule("coordination.k8s.io", ["leases"], ("get", "list", "create", "update"))]


# --- What RBAC cannot say ---------------------------------------------------------------------------------------------

POLICY_GROUP: Final = "admissionregistration.k8s.io"
POLICY_NAME: Final = f"{NAME}-writes"
_ONLY: Final = "setpoint writes the finalizers, the status and its cookie, and nothing else"
POLICY_VALIDATIONS: Final[Sequence[JsonObject]] = (
    {
        "expression": "object.?spec.orValue({}) == oldObject.?spec.orValue({})",
        "message": f"{_ONLY}: the spec is its author's",
    },
    {
        "expression": "object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}) && "
        "object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])",
        "message": f"{_ONLY}: labels and owners are the author's",
    },
    {
        "expression": "variables.after.all(key, key in variables.records || "
        "(key in variables.before && variables.before[key] == variables.after[key])) && "
        "variables.before.all(key, key in variables.records || key in variables.after)",
        "message": f"{_ONLY}: annotations are the author's",
    },
)
POLICY_VARIABLES: Final[Sequence[JsonObject]] = (
    {"name": "before", "expression": "oldObject.metadata.?annotations.orValue({})"},
    {"name": "after", "expression": "object.metadata.?annotations.orValue({})"},
    {"name": "records", "expression": f"['{COOKIE_ANNOTATION}', '{CLAIM}']"},
)


def write_policy(installation: Installation, kinds: Sequence[GroupResource]) -> list[JsonObject]:
    """A policy that leaves the controller of a whole cluster what it needs of `patch`: RBAC knows no single fields.

    A controller of one namespace is installed without rights in the cluster, and has none.
    """
    if installation.watch_namespace is not None:
        return []
    user = f"system:serviceaccount:{installation.namespace}:{installation.account}"
    spec: JsonObject = {
        "failurePolicy": "Fail",
        # With all that the cluster defaults: otherwise another tool that applies the same would get a conflict.
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [_admitted(group, plurals) for group, plurals in by_group(kinds)],
        },
        "matchConditions": [{"name": "controller", "expression": f"request.userInfo.username == '{user}'"}],
        "variables": list(POLICY_VARIABLES),
        "validations": list(POLICY_VALIDATIONS),
    }
    bound: JsonObject = {"policyName": POLICY_NAME, "validationActions": ["Deny"]}
    return [_policy("ValidatingAdmissionPolicy", spec), _policy("ValidatingAdmissionPolicyBinding", bound)]


def _admitted(group: str, plurals: Sequence[str]) -> JsonObject:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": list(plurals),
        "scope": "*",
    }


def _policy(kind: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": f"{POLICY_GROUP}/v1", "kind": kind, "metadata": cluster_metadata(POLICY_NAME), "spec": spec}


# --- Users ------------------------------------------------------------------------------------------------------------


def user_rbac(kinds: Sequence[GroupResource], *, objects_too: bool = False) -> list[JsonObject]:
    """Roles that aggregate our kinds to the cluster's own roles `view` and `edit`, and thereby `admin`.

    A grant opens its namespace: users with the role `admin` write it. A KubernetesObject may be any object: users with
    the role `edit` write them only where `objects_too` says so.
    """
    known = sorted((*kinds, GRANTS))
    statuses = [rule(group, [f"{one}/status" for one in plurals], ("get",)) for group, plurals in by_group(kinds)]
    return [
        _aggregated_role("view", [*(rule(group, plurals, _READ) for group, plurals in by_group(known)), *statuses]),
        *(
            _aggregated_role(
                name, edit_rules([one for one in known if writing_role(one, objects_too=objects_too) == name])
            )
            for name in WRITING_ROLES
        ),
    ]


def writing_role(kind: GroupResource, *, objects_too: bool = False) -> str:
    """The cluster's own role whose users may write a kind; empty for none of them."""
    return "edit" if objects_too and kind == KUBERNETES_OBJECTS else _WRITING_ROLES.get(kind, "edit")


def edit_rules(kinds: Sequence[GroupResource]) -> list[JsonObject]:
    """To write resources of these kinds."""
    return [rule(group, plurals, _EDIT) for group, plurals in by_group(kinds)]


def _aggregated_role(name: str, rules: list[JsonObject]) -> JsonObject:
    return role("ClusterRole", cluster_metadata(f"{NAME}-{name}", {f"{_RBAC}/aggregate-to-{name}": "true"}), rules)


# --- Objects ----------------------------------------------------------------------------------------------------------


def by_group(kinds: Iterable[GroupResource]) -> list[tuple[str, list[str]]]:
    """The plurals of these kinds by group, in their order."""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(kind.plural)
    return list(groups.items())


def rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> JsonObject:
    """A rule of a role."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def role(kind: str, metadata: dict[str, Json], rules: Sequence[JsonObject]) -> JsonObject:
    """A Role or a ClusterRole."""
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}


def binding(kind: str, metadata: dict[str, Json], account: JsonObject) -> JsonObject:
    """Binds the role of that kind and name to `account`."""
    return {**role_binding(metadata, kind, text_at(metadata, "name"), account), "kind": f"{kind}Binding"}


def role_binding(metadata: dict[str, Json], kind: str, name: str, account: JsonObject) -> JsonObject:
    """Binds a role to `account`, in the namespace of `metadata`."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [account],
    }
