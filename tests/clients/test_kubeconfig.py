"""Kubeconfig files: the connection that a context resolves to, and where files are searched."""

from pathlib import Path
from typing import Any

import pytest

from setpoint.clients.kubernetes.contexts import connection_from_environment, connection_from_files
from setpoint.clients.kubernetes.kubeconfig import (
    BasicAuth,
    BearerToken,
    CertificateAuthority,
    ClientCertificate,
    ClusterConnection,
    ExecPlugin,
    FileText,
    Impersonation,
    InlineText,
    InteractiveMode,
    Login,
    NoLogin,
    ServerTrust,
    SkipVerify,
    SystemRoots,
)
from setpoint.errors import UserError
from tests.clients.kubeconfigs import config, encoded, written

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def read(folder: Path, content: object, context: str | None = None) -> ClusterConnection:
    return connection_from_files([written(folder / "config", content)], context)


# --- The connection ---------------------------------------------------------------------------------------------------


def test_uses_the_current_context(tmp_path: Path) -> None:
    connection = read(tmp_path, config(context={"namespace": "shop"}))

    assert connection == ClusterConnection(
        f"context prod of {tmp_path / 'config'}", "https://prod.test:6443", SystemRoots(), namespace="shop"
    )


def test_uses_the_named_context(tmp_path: Path) -> None:
    both = config()
    other = config(name="stage")
    for part in ("clusters", "users", "contexts"):
        both[part] += other[part]

    assert read(tmp_path, both, "stage").server == "https://stage.test:6443"


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("https://a.test/", "https://a.test"),
        ("https://a.test/k8s/clusters/c-1/", "https://a.test/k8s/clusters/c-1"),
        ("https://[::1]:6443", "https://[::1]:6443"),
        ("http://a.test:8080", "http://a.test:8080"),
        ("a.test:8080", "http://a.test:8080"),
    ],
)
def test_accepts_every_form_of_address(server: str, address: str, tmp_path: Path) -> None:
    assert read(tmp_path, config({"server": server})).server == address


@pytest.mark.parametrize(
    ("cluster", "trust"),
    [
        ({}, SystemRoots()),
        ({"certificate-authority-data": encoded("PEM")}, CertificateAuthority("PEM")),
        ({"certificate-authority": "ca.crt"}, CertificateAuthority("from a file")),
        ({"insecure-skip-tls-verify": True}, SkipVerify()),
        # As with kubectl: a null member is absent.
        ({"certificate-authority": None, "extensions": None}, SystemRoots()),
    ],
)
def test_the_trust_of_a_cluster_entry(cluster: dict[str, Any], trust: ServerTrust, tmp_path: Path) -> None:
    written(tmp_path / "ca.crt", "from a file")

    assert read(tmp_path, config(cluster)).trust == trust


def test_the_other_fields_of_a_cluster_entry(tmp_path: Path) -> None:
    cluster = {
        "tls-server-name": "kubernetes",
        "proxy-url": "http://me:hunter2@proxy:3128",
        "disable-compression": True,
    }

    connection = read(tmp_path, config(cluster))

    assert (connection.server_name, connection.proxy) == ("kubernetes", "http://me:hunter2@proxy:3128")
    assert not connection.compressed


@pytest.mark.parametrize(
    ("user", "login"),
    [
        ({}, NoLogin()),
        ({"token": "t"}, BearerToken(InlineText("t"))),
        ({"tokenFile": "/run/token"}, BearerToken(FileText(Path("/run/token"), "tokenFile"))),
        ({"tokenFile": "/run/token", "token": "t"}, BearerToken(FileText(Path("/run/token"), "tokenFile"), "t")),
        ({"username": "me", "password": "p"}, BasicAuth("me", "p")),
        (
            {"exec": {"apiVersion": V1BETA1, "command": "aws", "args": ["eks"], "env": [{"name": "A", "value": "b"}]}},
            ExecPlugin("aws", ("eks",), (("A", "b"),), V1BETA1, InteractiveMode.IF_AVAILABLE),
        ),
        (
            {"exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Never", "installHint": "get it"}},
            ExecPlugin("x", api_version=V1, interactive=InteractiveMode.NEVER, install_hint="get it"),
        ),
        # As with kubectl: an exec plugin is not run when there are other credentials.
        (
            {"exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Never"}, "token": "t"},
            BearerToken(InlineText("t")),
        ),
    ],
)
def test_the_login_of_a_user_entry(user: dict[str, Any], login: Login, tmp_path: Path) -> None:
    assert read(tmp_path, config(user=user)).login == login


def test_a_client_certificate_may_be_inline_and_its_key_in_a_file(tmp_path: Path) -> None:
    user = {"client-certificate-data": encoded("CERT"), "client-key": "keys/me.key"}

    connection = read(tmp_path, config(user=user))

    assert connection.certificate == ClientCertificate(
        InlineText("CERT"), FileText(tmp_path / "keys" / "me.key", "client-key")
    )


def test_impersonates_another_user(tmp_path: Path) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"scopes": ["x", "y"]}}

    connection = read(tmp_path, config(user=user))

    assert connection.impersonation == Impersonation("jane", "7", ("a", "b"), (("scopes", ("x", "y")),))


def test_an_exec_plugin_gets_the_cluster_info_it_asks_for(tmp_path: Path) -> None:
    cluster = {
        "certificate-authority-data": encoded("PEM"),
        "tls-server-name": "kubernetes",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    }
    user = {"exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Never", "provideClusterInfo": True}}

    login = read(tmp_path, config(cluster, user)).login

    assert isinstance(login, ExecPlugin)
    assert login.cluster == {
        "server": "https://prod.test:6443",
        "certificate-authority-data": encoded("PEM"),
        "tls-server-name": "kubernetes",
        "config": {"audience": "a"},
    }


def test_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    user = {"tokenFile": "token", "client-certificate": "me.crt", "client-key": "../me.key"}
    run = {"exec": {"apiVersion": V1, "command": "./bin/login", "interactiveMode": "Never"}}
    written(tmp_path / "a" / "ca.crt", "PEM")

    written(tmp_path / "a" / "config", config({"certificate-authority": "ca.crt"}, user))
    written(tmp_path / "b" / "config", config({}, run, "stage"))
    files = [tmp_path / "a" / "config", tmp_path / "b" / "config"]
    first, second = connection_from_files(files), connection_from_files(files, "stage")

    assert first.trust == CertificateAuthority("PEM")
    assert first.login == BearerToken(FileText(tmp_path / "a" / "token", "tokenFile"))
    assert first.certificate is not None
    assert first.certificate.key == FileText(tmp_path / "a" / ".." / "me.key", "client-key")
    assert isinstance(second.login, ExecPlugin)
    assert second.login.command == str(tmp_path / "b" / "bin" / "login")


def test_no_secret_is_printed(tmp_path: Path) -> None:
    secret = "hunter2"
    exec_ = {"apiVersion": V1BETA1, "command": "x", "args": [secret], "env": [{"name": "A", "value": secret}]}
    users: list[dict[str, Any]] = [
        {"token": secret},
        {"username": "me", "password": secret},
        {"client-certificate-data": encoded("CERT"), "client-key-data": encoded(secret)},
        {"tokenFile": "/token", "token": secret},
        {"exec": exec_},
    ]

    printed = [repr(read(tmp_path, config({"proxy-url": f"http://me:{secret}@proxy"}, user))) for user in users]

    assert [one for one in printed if secret in one] == []


# --- Where it is searched ---------------------------------------------------------------------------------------------


def test_kubeconfig_names_the_files_and_missing_ones_are_skipped(tmp_path: Path) -> None:
    first, second = written(tmp_path / "a", config()), written(tmp_path / "b", config(name="stage"))
    named = f"{tmp_path / 'none'}::{first}:{second}"

    assert connection_from_environment({"KUBECONFIG": named}).server == "https://prod.test:6443"
    assert connection_from_environment({"KUBECONFIG": named}, "stage").server == "https://stage.test:6443"


def test_without_kubeconfig_the_file_in_the_home_folder_is_used(tmp_path: Path) -> None:
    written(tmp_path / ".kube" / "config", config())

    assert connection_from_environment({"HOME": str(tmp_path)}).server == "https://prod.test:6443"


def pod(folder: Path) -> dict[str, str]:
    """The environment of a process in a pod with its service account in `folder`."""
    written(folder / "token", "t")
    written(folder / "ca.crt", "PEM")
    written(folder / "namespace", "shop\n")
    return {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(folder / "home")}


def test_in_a_pod_its_own_cluster_is_used(tmp_path: Path) -> None:
    connection = connection_from_environment(pod(tmp_path), account=tmp_path)

    assert connection == ClusterConnection(
        "the cluster around this pod",
        "https://10.0.0.1:443",
        CertificateAuthority("PEM"),
        namespace="shop",
        login=BearerToken(FileText(tmp_path / "token", "the service account's token")),
    )


def test_in_a_pod_with_ipv6_the_address_has_its_brackets(tmp_path: Path) -> None:
    environment = pod(tmp_path) | {"KUBERNETES_SERVICE_HOST": "fd00::1"}

    assert connection_from_environment(environment, account=tmp_path).server == "https://[fd00::1]:443"


def test_in_a_pod_kubeconfig_takes_precedence(tmp_path: Path) -> None:
    environment = pod(tmp_path) | {"KUBECONFIG": str(written(tmp_path / "config", config()))}

    assert connection_from_environment(environment, account=tmp_path).server == "https://prod.test:6443"


def test_in_a_pod_a_named_context_comes_from_a_file(tmp_path: Path) -> None:
    written(tmp_path / "home" / ".kube" / "config", config())

    assert connection_from_environment(pod(tmp_path), "prod", tmp_path).server == "https://prod.test:6443"


def test_a_service_account_without_its_authority_is_a_user_error(tmp_path: Path) -> None:
    environment = pod(tmp_path)
    (tmp_path / "ca.crt").unlink()

    with pytest.raises(UserError, match=r"cannot read .*ca\.crt: No such file or directory: mount the service account"):
        connection_from_environment(environment, account=tmp_path)
