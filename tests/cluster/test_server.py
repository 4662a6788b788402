"""The API server of the tests is a real one, and private to them."""

import http.client
import ssl
import subprocess

import pytest

from tests.cluster.access import ANONYMOUS, Access
from tests.cluster.assets import Assets
from tests.cluster.polling import until


def _kubectl(server: Access, user: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    assert server.kubectl is not None
    command = [str(server.kubectl), "--kubeconfig", str(server.kubeconfig_of(user)), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"HOME": str(server.folder)})


def test_it_serves_the_version_of_its_program(api_server: Access, cluster_assets: Assets) -> None:
    version = subprocess.run([cluster_assets.kube_apiserver, "--version"], capture_output=True, text=True, check=True)

    assert version.stdout == f"Kubernetes {api_server.call('GET', '/version').body['gitVersion']}\n"


def test_anonymous_is_refused(api_server: Access) -> None:
    answer = api_server.call("GET", "/api/v1/namespaces", user=ANONYMOUS)

    assert (answer.status, answer.body["message"]) == (
        403,
        'namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" '
        "at the cluster scope",
    )


def test_a_user_is_authenticated_and_has_no_permissions(api_server: Access) -> None:
    answer = api_server.call("GET", "/api/v1/secrets", user="alice")

    assert answer.status == 403
    assert 'User "alice"' in answer.body["message"]


def test_an_unknown_token_is_refused(api_server: Access) -> None:
    connection = http.client.HTTPSConnection(api_server.url.removeprefix("https://"), context=api_server.tls(ANONYMOUS))
    connection.request("GET", "/api", headers={"Authorization": "Bearer made-up"})

    assert connection.getresponse().status == 401
    connection.close()


def test_the_server_is_trusted_only_through_our_authority(api_server: Access) -> None:
    connection = http.client.HTTPSConnection(
        api_server.url.removeprefix("https://"), context=ssl.create_default_context()
    )

    with pytest.raises(ssl.SSLCertVerificationError):
        connection.request("GET", "/version")


def test_a_user_has_the_permissions_that_a_test_grants(api_server: Access, namespace: str) -> None:
    binding = {
        "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "alice"}],
    }
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    allowed = api_server.call("POST", rbac, binding)

    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    assert allowed.status == 201
    api_server.until_permitted("alice", "list", "secrets", namespace)
    assert api_server.call("GET", secrets, user="alice").status == 200
    assert api_server.call("GET", secrets, user="bob").status == 403


def test_a_test_has_an_empty_namespace_of_its_own(api_server: Access, namespace: str) -> None:
    found = api_server.call("GET", f"/api/v1/namespaces/{namespace}/secrets").body["items"]

    assert found == []


@pytest.mark.usefixtures("controllers")
def test_a_deleted_namespace_is_finalized_with_its_objects(api_server: Access, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    api_server.call("POST", path, {"metadata": {"name": "left"}})
    api_server.delete_namespace(namespace)

    until(lambda: api_server.call("GET", f"/api/v1/namespaces/{namespace}").status == 404)
    assert api_server.call("GET", f"{path}/left").status == 404


@pytest.mark.usefixtures("controllers")
def test_an_object_without_its_owner_is_collected(api_server: Access, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = api_server.call("POST", path, {"metadata": {"name": "owner"}}).body["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
    api_server.call("POST", path, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    api_server.call("DELETE", f"{path}/owner")

    until(lambda: api_server.call("GET", f"{path}/owned").status == 404)


@pytest.mark.usefixtures("kubectl_program")
def test_kubectl_works_with_the_kubeconfigs_of_administrator_and_user(api_server: Access, namespace: str) -> None:
    allowed_result = _kubectl(api_server, "admin", "get", "namespace", namespace, "--output", "name")
    refused_result = _kubectl(api_server, "bob", "get", "namespace", namespace)

    assert (allowed_result.stdout, allowed_result.returncode) == (f"namespace/{namespace}\n", 0)
    assert 'User "bob" cannot get resource' in refused_result.stderr
