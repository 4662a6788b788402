"""The permissions of the controller, as a real API server reports them: exactly these."""

import json
from collections.abc import Iterable, Mapping

import pytest

from setpoint.core.values.json_types import JsonObject
from setpoint.deployment.installation import Installation
from tests.cluster.access import Access
from tests.deployment.conftest import Kubectl
from tests.deployment.eventually import once
from tests.deployment.installed_objects import KINDS, process

# A permission is a group, a resource and a verb.
Right = tuple[str, str, str]
BUCKETS = next(kind for kind in KINDS if kind.plural == "storagebuckets")
_RIGHTS = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}

OURS = {
    (kind.group, name, verb)
    for kind in KINDS
    for name, verbs in ((kind.plural, "get list watch patch"), (f"{kind.plural}/status", "patch"))
    for verb in verbs.split()
}
MADE = (
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    ("", "secrets"),
    ("", "services"),
    ("apps", "deployments"),
    ("confidentialcontainers.org", "kbsconfigs"),
)
BESIDES = {
    *((*kind, verb) for kind in MADE for verb in ["get", "list", "watch", "create", "update", "delete"]),
    *(("confidentialcontainers.org", f"{name}/finalizers", "update") for name in ("kbsconfigs", "trusteeconfigs")),
    *(("", "events", verb) for verb in ("get", "create", "patch")),
    # In a Role: that of its own namespace.
    ("", "namespaces", "get"),
}
# Cluster-scoped: a Role of one namespace cannot grant it.
CLUSTER_SCOPED = {
    *(("", "persistentvolumes", verb) for verb in ("get", "list", "watch")),
    *(("", "namespaces", verb) for verb in ("list", "watch")),
}
LEASES = {("coordination.k8s.io", "leases", verb) for verb in ("get", "list", "create", "update")}


class Rights:
    """Permissions of users, from the API server."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def once_granted(self, user: str, namespace: str, wanted: set[Right]) -> set[Right]:
        """The permissions of `user` there, once they are `wanted`."""
        return once(lambda: self.of(user, namespace), wanted)

    def of(self, user: str, namespace: str) -> set[Right]:
        """The permissions of `user` in `namespace` beyond those of every user."""
        baseline = "system:serviceaccount:default:unbound"
        return self._all(user, namespace) - self._all(baseline, namespace)

    def _all(self, user: str, namespace: str) -> set[Right]:
        question = json.dumps({**_RIGHTS, "spec": {"namespace": namespace}})
        answer = json.loads(
            self._kubectl("create", f"--as={user}", "--validate=false", "-o", "json", "-f", "-", stdin=question)
        )
        return {
            (group, resource, verb)
            for rule in answer["status"]["resourceRules"]
            for group in rule.get("apiGroups", ())
            for resource in rule.get("resources", ())
            for verb in rule["verbs"]
        }


@pytest.fixture(scope="session")
def rights(kubectl: Kubectl) -> Rights:
    return Rights(kubectl)


def _install(kubectl: Kubectl, installation: Installation) -> str:
    """Installs the objects that grant permissions; returns the service account."""
    kubectl.apply(_stream(one for one in process(installation).values() if one["kind"] in _FOR_RIGHTS))
    return f"system:serviceaccount:{installation.namespace}:setpoint"


_FOR_RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def _stream(objects: Iterable[JsonObject]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


@pytest.fixture(scope="session")
def controller(kubectl: Kubectl, rights: Rights) -> str:
    """The service account of a controller for all namespaces, once it has its permissions."""
    user = _install(kubectl, Installation())
    rights.once_granted(user, "setpoint-system", OURS | BESIDES | CLUSTER_SCOPED | LEASES)
    return user


def test_the_controller_has_these_permissions_in_all_namespaces(
    controller: str, rights: Rights, namespace: str
) -> None:
    assert rights.of(controller, namespace) == OURS | BESIDES | CLUSTER_SCOPED


def test_leases_are_permitted_in_its_own_namespace_only(controller: str, rights: Rights) -> None:
    assert rights.of(controller, "setpoint-system") == OURS | BESIDES | CLUSTER_SCOPED | LEASES


def test_with_one_namespace_it_has_permissions_there_only(
    kubectl: Kubectl, rights: Rights, api_server: Access, namespace: str
) -> None:
    home = api_server.new_namespace()
    user = _install(kubectl, Installation(namespace=home, watch_namespace=namespace))

    assert rights.once_granted(user, namespace, OURS | BESIDES) == OURS | BESIDES
    assert rights.of(user, home) == LEASES
    assert rights.of(user, "default") == set()


@pytest.mark.parametrize(
    ("what", "is_allowed"),
    [
        ({"group": BUCKETS.group, "resource": BUCKETS.plural, "verb": "patch"}, True),
        ({"group": BUCKETS.group, "resource": BUCKETS.plural, "subresource": "status", "verb": "patch"}, True),
        ({"resource": "secrets", "verb": "get"}, True),
        # Resources belong to their authors.
        ({"group": BUCKETS.group, "resource": BUCKETS.plural, "verb": "create"}, False),
        ({"group": BUCKETS.group, "resource": BUCKETS.plural, "verb": "delete"}, False),
        ({"group": BUCKETS.group, "resource": BUCKETS.plural, "verb": "update"}, False),
        # Children belong to owners; a KbsConfig is generated, or written by an author.
        ({"resource": "secrets", "verb": "create"}, True),
        ({"group": "confidentialcontainers.org", "resource": "kbsconfigs", "verb": "update"}, True),
        ({"group": "confidentialcontainers.org", "resource": "trusteeconfigs", "verb": "update"}, False),
        ({"resource": "persistentvolumes", "verb": "get"}, True),
        ({"resource": "persistentvolumes", "verb": "patch"}, False),
        ({"resource": "namespaces", "verb": "watch"}, True),
        ({"resource": "namespaces", "verb": "patch"}, False),
        # Privilege escalation.
        ({"resource": "serviceaccounts", "verb": "impersonate"}, False),
        ({"resource": "serviceaccounts", "subresource": "token", "verb": "create"}, False),
        ({"group": "rbac.authorization.k8s.io", "resource": "roles", "verb": "escalate"}, False),
        ({"group": "rbac.authorization.k8s.io", "resource": "clusterrolebindings", "verb": "create"}, False),
        ({"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "verb": "list"}, False),
        ({"resource": "pods", "verb": "create"}, False),
        ({"resource": "pods", "subresource": "exec", "verb": "create"}, False),
        ({"group": "apps", "resource": "daemonsets", "verb": "get"}, False),
    ],
    ids=str,
)
def test_the_api_server_allows_or_denies(
    controller: str, api_server: Access, what: Mapping[str, str], is_allowed: bool
) -> None:
    question = {"spec": {"user": controller, "resourceAttributes": {"namespace": "default", **what}}}

    answer = api_server.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", question)

    assert answer.body["status"]["allowed"] is is_allowed
