"""The rights of the controller and of tenants, as a real API server reports them: those in the tables of the pages.

`kubectl auth can-i --list` asks the same question.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from setpoint.cli.main import main
from setpoint.core.values.json_types import JsonObject
from setpoint.deployment.installation import Installation
from tests.cluster.access import Access
from tests.deployment.conftest import Kubectl
from tests.deployment.installed_objects import ALL_KINDS, DEFAULT, DEFAULT_KINDS, TRUSTEE_KINDS, process
from tests.deployment.rights import (
    EVERYWHERE,
    HOME,
    OPERATOR_PAGE,
    TENANT_PAGE,
    ReportedRights,
    Right,
    documented,
    rights_in,
)

BASIC, OF_TRUSTEE = documented(OPERATOR_PAGE)
TENANT, TENANT_OF_TRUSTEE = documented(TENANT_PAGE)
DEFAULTS = rights_in(BASIC, EVERYWHERE)
ALL = DEFAULTS | rights_in(OF_TRUSTEE, EVERYWHERE)
LEASES = rights_in(BASIC, HOME)
# In one namespace: cluster-scoped kinds are out of reach, but for the Namespace itself.
CLUSTER_SCOPED = {
    Right("", plural, verb) for plural in ("namespaces", "persistentvolumes") for verb in ("list", "watch")
}
OUT_OF_REACH = CLUSTER_SCOPED | {Right("", "persistentvolumes", "get")}


@pytest.fixture(scope="session")
def rights(kubectl: Kubectl) -> ReportedRights:
    return ReportedRights(kubectl)


def _install(kubectl: Kubectl, installation: Installation) -> str:
    """Installs the objects that grant permissions; returns the service account."""
    kubectl.apply(_stream(one for one in process(installation).values() if one["kind"] in _FOR_RIGHTS))
    return f"system:serviceaccount:{installation.namespace}:{installation.account}"


_FOR_RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def _stream(objects: Iterable[JsonObject]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


# --- The controller ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def controller(kubectl: Kubectl, rights: ReportedRights) -> str:
    """The service account of a controller for all namespaces, once it has its permissions."""
    user = _install(kubectl, DEFAULT)
    rights.once_granted(user, "setpoint-system", DEFAULTS | LEASES)
    return user


def test_the_controller_has_the_documented_rights_in_all_namespaces(
    controller: str, rights: ReportedRights, namespace: str
) -> None:
    assert rights.of(controller, namespace) == DEFAULTS


def test_leases_are_permitted_in_its_own_namespace_only(controller: str, rights: ReportedRights) -> None:
    assert rights.of(controller, "setpoint-system") == DEFAULTS | LEASES
    assert len(LEASES) == 4


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [(DEFAULT_KINDS, DEFAULTS), (ALL_KINDS, ALL), (("StorageBucket",), None)],
    ids=["default", "all", "one kind"],
)
def test_with_one_namespace_it_has_rights_there_only(
    kubectl: Kubectl,
    rights: ReportedRights,
    api_server: Access,
    namespace: str,
    kinds: tuple[str, ...],
    wanted: set[Right] | None,
) -> None:
    home = api_server.new_namespace(is_tenant=False)
    user = _install(kubectl, Installation(home, watch_namespace=namespace, kinds=kinds))

    if wanted is None:
        of_others = ("sql", "iam", "kubernetesobjects", "secrets")
        wanted = {one for one in DEFAULTS if not one.resource.startswith(of_others)}
    assert rights.once_granted(user, namespace, wanted - OUT_OF_REACH) == wanted - OUT_OF_REACH
    assert rights.of(user, home) == LEASES
    assert rights.of(user, "default") == set()
    # Its own Namespace can be read, and no other, nor the list of them.
    allowed = {name: _may_read_namespace(api_server, user, name) for name in (namespace, home, "")}
    assert allowed == {namespace: True, home: False, "": False}


def _may_read_namespace(api_server: Access, user: str, name: str) -> bool:
    """Whether it may GET that Namespace; without a name, whether it may list them."""
    attributes = {"resource": "namespaces", "verb": "get" if name else "list", "namespace": name, "name": name}
    review = {"spec": {"user": user, "resourceAttributes": attributes}}
    answer = api_server.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    allowed: bool = answer.body["status"]["allowed"]
    return allowed


def test_with_trustee_it_has_those_rights_too_and_none_to_write_children(
    kubectl: Kubectl, rights: ReportedRights, namespace: str
) -> None:
    """In a role of its own: the shared cluster has one of the name that an installation has."""
    roles = [one for (kind, _, _), one in process(replace(DEFAULT, kinds=ALL_KINDS)).items() if kind == "ClusterRole"]
    kubectl.apply(_stream({**one, "metadata": {"name": f"trustee-{namespace}"}} for one in roles))
    user = f"keeper-{namespace}"
    kubectl(
        "create", "clusterrolebinding", f"trustee-{namespace}", f"--clusterrole=trustee-{namespace}", f"--user={user}"
    )

    assert rights.once_granted(user, namespace, ALL) == ALL


@pytest.mark.parametrize(
    ("what", "is_allowed"),
    [
        ({"group": "storage.cnrm.cloud.google.com", "resource": "storagebuckets", "verb": "patch"}, True),
        ({"resource": "serviceaccounts", "verb": "impersonate", "name": "setpoint"}, True),
        # Resources belong to their authors.
        ({"group": "storage.cnrm.cloud.google.com", "resource": "storagebuckets", "verb": "create"}, False),
        ({"group": "storage.cnrm.cloud.google.com", "resource": "storagebuckets", "verb": "update"}, False),
        ({"group": "storage.cnrm.cloud.google.com", "resource": "storagebuckets", "verb": "delete"}, False),
        # Objects belong to tenants.
        ({"resource": "secrets", "verb": "get"}, False),
        ({"resource": "secrets", "verb": "create"}, False),
        ({"resource": "secrets", "verb": "update"}, False),
        ({"resource": "configmaps", "verb": "list"}, False),
        ({"group": "apps", "resource": "deployments", "verb": "create"}, False),
        ({"group": "apps", "resource": "deployments", "verb": "get"}, False),
        ({"resource": "pods", "verb": "create"}, False),
        ({"resource": "pods", "subresource": "exec", "verb": "create"}, False),
        # Trustee's kinds are not installed.
        ({"group": "confidentialcontainers.org", "resource": "kbsconfigs", "verb": "get"}, False),
        ({"resource": "persistentvolumes", "verb": "get"}, False),
        # A grant opens a namespace: its administrator writes it.
        ({"group": "setpoint.dev", "resource": "referencegrants", "verb": "get"}, True),
        ({"group": "setpoint.dev", "resource": "referencegrants", "verb": "patch"}, False),
        ({"group": "setpoint.dev", "resource": "referencegrants", "verb": "create"}, False),
        # Privilege escalation.
        ({"resource": "serviceaccounts", "verb": "impersonate", "name": "default"}, False),
        ({"resource": "serviceaccounts", "verb": "impersonate"}, False),
        ({"resource": "serviceaccounts", "verb": "create"}, False),
        ({"resource": "users", "verb": "impersonate", "name": "system:admin"}, False),
        ({"resource": "groups", "verb": "impersonate", "name": "system:masters"}, False),
        ({"resource": "serviceaccounts", "subresource": "token", "verb": "create", "name": "setpoint"}, False),
        ({"resource": "namespaces", "verb": "patch", "name": "default"}, False),
        ({"group": "rbac.authorization.k8s.io", "resource": "roles", "verb": "escalate"}, False),
        ({"group": "rbac.authorization.k8s.io", "resource": "clusterrolebindings", "verb": "create"}, False),
        ({"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "verb": "list"}, False),
    ],
    ids=str,
)
def test_the_api_server_allows_or_denies(
    controller: str, api_server: Access, what: Mapping[str, str], is_allowed: bool
) -> None:
    question = {"spec": {"user": controller, "resourceAttributes": {"namespace": "default", **what}}}

    answer = api_server.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", question)

    assert answer.body["status"]["allowed"] is is_allowed


# --- Tenants ----------------------------------------------------------------------------------------------------------


def _tenant(access: Access, *options: str) -> Result:
    environment = {"KUBECONFIG": str(access.kubeconfig)}
    done = CliRunner(env=environment).invoke(main, ["tenant", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture
def shop(api_server: Access) -> str:
    """A namespace that an administrator has yet to set up."""
    return api_server.new_namespace(is_tenant=False, project="")


@pytest.mark.parametrize(
    "kinds", [DEFAULT_KINDS, TRUSTEE_KINDS, ("KbsConfig",), ("IAMServiceAccountKey",), ("StorageBucket",)], ids=str
)
def test_an_account_of_a_namespace_has_the_documented_rights_there_only(
    api_server: Access, rights: ReportedRights, shop: str, kinds: tuple[str, ...]
) -> None:
    role = ["--role", ""] if "KubernetesObject" in kinds else []
    _tenant(api_server, shop, "--kinds", ",".join(kinds), *role)

    user, wanted = f"system:serviceaccount:{shop}:setpoint", rights_in([*TENANT, *TENANT_OF_TRUSTEE], *kinds)
    assert rights.once_granted(user, shop, wanted) == wanted
    assert rights.of(user, "default") == set()


def test_by_default_an_account_may_do_what_the_role_edit_says(
    api_server: Access, kubectl: Kubectl, rights: ReportedRights, shop: str
) -> None:
    kubectl("create", "rolebinding", "editor", "--clusterrole=edit", "--user=editor", "--namespace", shop)
    _tenant(api_server, shop)

    user = f"system:serviceaccount:{shop}:setpoint"
    api_server.until_permitted("editor", "create", "configmaps", shop)
    api_server.until_permitted(user, "create", "configmaps", shop)
    assert rights.of(user, shop) == rights.of("editor", shop) | rights_in(TENANT, *DEFAULT_KINDS)
    assert rights.of(user, "default") == set()


def test_set_up_again_a_namespace_has_what_the_last_run_gave(
    api_server: Access, kubectl: Kubectl, rights: ReportedRights, shop: str
) -> None:
    first = _tenant(api_server, shop)
    again = _tenant(api_server, shop)
    other = _tenant(api_server, shop, "--role", "view")
    bound = kubectl.get("rolebinding", "setpoint-tenant-objects", "--namespace", shop)["roleRef"]["name"]
    last = _tenant(api_server, shop, "--kinds", "StorageBucket")

    names = ["ServiceAccount", "Role", "RoleBinding", "RoleBinding"]
    assert [line.split()[0] for line in first.output.splitlines()] == names
    assert [line.split()[-1] for line in first.output.splitlines()] == ["created"] * 4
    assert [line.split()[-1] for line in again.output.splitlines()] == ["unchanged"] * 4
    assert other.output.splitlines()[0] == f"RoleBinding {shop}/setpoint-tenant-objects deleted"
    assert (bound, other.output.splitlines()[-1]) == ("view", f"RoleBinding {shop}/setpoint-tenant-objects created")
    assert last.output.splitlines()[0] == f"RoleBinding {shop}/setpoint-tenant-objects deleted"
    assert rights.once_granted(f"system:serviceaccount:{shop}:setpoint", shop, set()) == set()


def test_another_account_may_be_acted_as_in_that_namespace_only(
    api_server: Access, controller: str, rights: ReportedRights, shop: str
) -> None:
    _tenant(api_server, shop, "--service-account", "deployer", "--role", "view")

    wanted = DEFAULTS | {Right("", "serviceaccounts", verb, "deployer") for verb in ("get", "impersonate")}
    assert rights.once_granted(controller, shop, wanted) == wanted
    assert rights.of(controller, "default") == DEFAULTS
    api_server.until_permitted(f"system:serviceaccount:{shop}:deployer", "get", "configmaps", shop)


def test_annotations_of_a_namespace_are_added_and_kept(api_server: Access, kubectl: Kubectl, shop: str) -> None:
    kubectl("annotate", "namespace", shop, "team=shop")
    _tenant(api_server, shop, "--project", "shop-production")
    _tenant(api_server, shop, "--google-service-account", "shop@shop-production.iam.gserviceaccount.com")
    _tenant(api_server, shop)

    annotations = kubectl.get("namespace", shop)["metadata"]["annotations"]
    assert annotations == {
        "team": "shop",
        "cnrm.cloud.google.com/project-id": "shop-production",
        "setpoint.dev/google-service-account": "shop@shop-production.iam.gserviceaccount.com",
    }
