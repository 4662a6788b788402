"""The client on a real API server: authentication, and errors that name the missing permission."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.clients.kubernetes.kubeconfig import (
    BearerToken,
    CertificateAuthority,
    ExecPlugin,
    FileText,
    Impersonation,
    InlineText,
    InteractiveMode,
)
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.errors import RemoteRefused
from tests.clients.api_server_client import config_map, config_maps, tree, with_client
from tests.clients.exec_plugins import V1
from tests.cluster.access import Access
from tests.cluster.certificates import Authority as Signer

REVIEWS = Endpoint("authentication.k8s.io", "v1", "selfsubjectreviews")


def allow(access: Access, namespace: str, user: str, *verbs: str) -> None:
    """Grants `user` these verbs on the ConfigMaps of a namespace."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    access.call("POST", f"{path}/roles", {"metadata": {"name": "maps"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    binding = {"metadata": {"name": "maps"}, "roleRef": role, "subjects": [subject]}
    assert access.call("POST", f"{path}/rolebindings", binding).status == 201
    for verb in verbs:
        access.until_permitted(user, verb, "configmaps", namespace)


async def whoami(client: KubernetesClient) -> tuple[str, list[str]]:
    """The user and the groups that the API server sees."""
    user_info = tree(await client.create(REVIEWS, {}))["status"]["userInfo"]
    return user_info["username"], [
        group for group in user_info.get("groups", ()) if not group.startswith("system:auth")
    ]


def test_authenticates_by_a_client_certificate(api_server: Access) -> None:
    assert with_client(api_server.kubeconfig, whoami) == ("admin", ["system:masters"])


def test_authenticates_by_a_token(api_server: Access) -> None:
    assert with_client(api_server.kubeconfig_of("alice"), whoami) == ("alice", [])


def test_a_token_from_a_file_is_cached_for_a_minute(api_server: Access, tmp_path: Path) -> None:
    file = tmp_path / "token"
    known = connection_from_files([api_server.kubeconfig_of("alice")])
    connection = dataclasses.replace(known, login=BearerToken(FileText(file, "tokenFile")))

    async def rotate(client: KubernetesClient) -> list[str]:
        seen = []
        for user in ("alice", "bob"):
            file.write_text(api_server.token_of(user), encoding="utf-8")
            seen.append((await whoami(client))[0])
        file.write_text("made-up", encoding="utf-8")
        return seen

    # Within a minute the first token is still sent.
    assert with_client(connection, rotate) == ["alice", "alice"]


def test_a_token_that_is_refused_is_read_again(api_server: Access, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("expired", encoding="utf-8")
    known = connection_from_files([api_server.kubeconfig_of("alice")])
    connection = dataclasses.replace(known, login=BearerToken(FileText(file, "tokenFile")))

    async def expire(client: KubernetesClient) -> str:
        with pytest.raises(RemoteRefused, match="log in again, or use another context"):
            await whoami(client)
        file.write_text(api_server.token_of("bob"), encoding="utf-8")
        return (await whoami(client))[0]

    assert with_client(connection, expire) == "bob"


def test_authenticates_by_an_exec_plugin(api_server: Access) -> None:
    printed = json.dumps({"apiVersion": V1, "status": {"token": api_server.token_of("bob")}})
    login = ExecPlugin(sys.executable, ("-c", f"print({printed!r})"), interactive=InteractiveMode.NEVER)
    connection = dataclasses.replace(connection_from_files([api_server.kubeconfig]), certificate=None, login=login)

    assert with_client(connection, whoami) == ("bob", [])


def test_authenticates_by_an_exec_plugin_with_a_certificate(api_server: Access) -> None:
    pair = [(api_server.folder / f"admin.{suffix}").read_text(encoding="utf-8") for suffix in ("crt", "key")]
    status = {"clientCertificateData": pair[0], "clientKeyData": pair[1]}
    printed = json.dumps({"apiVersion": V1, "status": status})
    login = ExecPlugin(sys.executable, ("-c", f"print({printed!r})"), interactive=InteractiveMode.NEVER)
    connection = dataclasses.replace(connection_from_files([api_server.kubeconfig]), certificate=None, login=login)

    assert with_client(connection, whoami) == ("admin", ["system:masters"])


def test_impersonates_another_user(api_server: Access) -> None:
    known = connection_from_files([api_server.kubeconfig])
    connection = dataclasses.replace(known, impersonation=Impersonation("jane", groups=("a", "b")))

    assert with_client(connection, whoami) == ("jane", ["a", "b"])


def test_names_the_missing_permission_and_needs_no_other(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)

    async def refused(client: KubernetesClient) -> str:
        with pytest.raises(RemoteRefused) as caught:
            await client.create(maps, config_map("one"))
        return str(caught.value)

    refusal = with_client(api_server.kubeconfig_of("alice"), refused)
    allow(api_server, namespace, "alice", "create")

    assert refusal.endswith(f". Give this user a role with the verb create on configmaps in the namespace {namespace}")
    assert with_client(api_server.kubeconfig_of("alice"), lambda client: client.create(maps, config_map("one")))


def test_an_unknown_token_is_refused(api_server: Access) -> None:
    connection = dataclasses.replace(
        connection_from_files([api_server.kubeconfig_of("alice")]), login=BearerToken(InlineText("hunter2"))
    )

    with pytest.raises(
        RemoteRefused, match=r"401: Unauthorized: Unauthorized\. The cluster does not know these"
    ) as caught:
        with_client(connection, whoami)
    assert "hunter2" not in str(caught.value)


def test_a_server_with_a_certificate_of_another_authority_is_refused(api_server: Access) -> None:
    other_authority = CertificateAuthority(Signer().certificate.decode())
    connection = dataclasses.replace(connection_from_files([api_server.kubeconfig]), trust=other_authority)

    with pytest.raises(RemoteRefused, match="shows a certificate that is not to be trusted"):
        with_client(connection, whoami)


def test_the_name_in_the_certificate_can_be_set(api_server: Access) -> None:
    known = connection_from_files([api_server.kubeconfig])

    right = with_client(dataclasses.replace(known, server_name="kubernetes.default.svc"), whoami)

    assert right[0] == "admin"
    with pytest.raises(RemoteRefused, match="Hostname mismatch"):
        with_client(dataclasses.replace(known, server_name="other"), whoami)
