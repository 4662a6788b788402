"""Invalid kubeconfig files: each error names the file, the context, the field and what to do."""

from pathlib import Path
from typing import Any

import pytest

from setpoint.clients.kubernetes.contexts import connection_from_environment, connection_from_files
from setpoint.errors import UserError
from tests.clients.kubeconfigs import config, encoded, written

V1 = "client.authentication.k8s.io/v1"


def refused(folder: Path, content: object, context: str | None = None) -> str:
    """The error, with `config` for the path of the file."""
    with pytest.raises(UserError) as caught:
        connection_from_files([written(folder / "config", content)], context)
    return str(caught.value).replace(str(folder / "config"), "config").replace(str(folder), "folder")


def test_without_any_file(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        connection_from_environment({"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"})

    assert str(caught.value) == (
        f"there is no kubeconfig at {tmp_path}/a, {tmp_path}/b: put one there, or name one in KUBECONFIG"
    )


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        connection_from_files([tmp_path])

    assert str(caught.value) == f"cannot read the kubeconfig {tmp_path}: Is a directory: allow it, or name another"


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"\xff\xfe")

    with pytest.raises(UserError, match="this is no kubeconfig: it is not UTF-8 text"):
        connection_from_files([tmp_path / "config"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [b", "config:2: this is not YAML: did not find expected ',' or ']'"),
        ("- a", "config:1: this is no kubeconfig: Expected `object`, got `array`"),
        ("kind: Pod", "config: this is no kubeconfig, but a Pod: name a file whose kind is Config"),
        ("kind: Config\n---\nkind: Config", "config: a kubeconfig is one document, and these are 2: keep one of them"),
        (
            "users:\n- name: me\n  user:\n    token: 123",
            "config:4: this is no kubeconfig: Expected `str`, got `int` - at `$.users[0].user.token`",
        ),
        (
            "clusters:\n- cluster: {server: a}",
            "config:2: this is no kubeconfig: Object missing required field `name` - at `$.clusters[0]`",
        ),
        (
            "users:\n- {name: me}\n- {name: me}",
            "config: the user me stands twice: keep one of them",
        ),
        ("", "config: no context is chosen: run `kubectl config use-context NAME`, or name one; there is none"),
    ],
)
def test_a_file_that_is_not_a_kubeconfig(text: str, message: str, tmp_path: Path) -> None:
    assert refused(tmp_path, text) == message


def test_no_context_is_chosen(tmp_path: Path) -> None:
    content = config() | {"current-context": ""}

    assert refused(tmp_path, content) == (
        "config: no context is chosen: run `kubectl config use-context NAME`, or name one; there is prod"
    )


def test_an_unknown_context(tmp_path: Path) -> None:
    assert refused(tmp_path, config(), "prd") == "config: there is no context prd: name one of these: prod"


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"cluster": "prot"}, "its cluster 'prot' is in none of these files: write one that is"),
        ({"user": "me"}, "its user 'me' is in none of these files: write one that is"),
    ],
)
def test_a_context_with_an_unknown_cluster_or_user(context: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert refused(tmp_path, config(context=context)) == f"config: context prod: {message}"


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (
            {"server": ""},
            "context prod: its cluster has no server: write the address of the API server, such as https://host:6443",
        ),
        (
            {"server": "ftp://x"},
            "context prod: its server is 'ftp://x': write an address such as https://host:6443",
        ),
        (
            {"certificate-authority": "ca", "certificate-authority-data": encoded("x")},
            "context prod: certificate-authority and certificate-authority-data are both set: keep one of them",
        ),
        (
            {"certificate-authority": "ca", "insecure-skip-tls-verify": True},
            "context prod: insecure-skip-tls-verify leaves no use for a certificate authority: keep one of them",
        ),
        (
            {"certificate-authority-data": "not base64"},
            "certificate-authority-data of context prod is not base64: encode the file again",
        ),
        (
            {"certificate-authority": "no/ca"},
            "context prod: cannot read its certificate-authority folder/no/ca: No such file or directory: put it there",
        ),
        (
            {"proxy-url": "socks5://me:hunter2@x:1"},
            "context prod: its proxy-url is a socks5 address: only http and https proxies are known here",
        ),
    ],
)
def test_an_invalid_cluster_entry(cluster: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert refused(tmp_path, config(cluster)) == f"config: {message}"


@pytest.mark.parametrize(
    ("user", "message"),
    [
        (
            {"client-certificate": "me.crt"},
            "has a client-certificate and no client-key: write client-key or client-key-data",
        ),
        (
            {"client-certificate": "a", "client-certificate-data": "b"},
            "has both client-certificate and client-certificate-data: keep one of them",
        ),
        ({"token": "hunter2", "username": "me"}, "has both a token and a password: keep one of them"),
        (
            {"as-groups": ["a"]},
            "has as-uid, as-groups or as-user-extra and no as: write whom to act as",
        ),
        ({"exec": {}}, "has an exec without a command: write the command that logs in"),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            f"has an exec with apiVersion 'client.authentication.k8s.io/v1alpha1': write {V1}, or update the command",
        ),
        (
            {"exec": {"command": "x", "apiVersion": V1}},
            "has an exec with interactiveMode '': write Never, IfAvailable, Always",
        ),
        (
            {"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Never", "env": [{"value": "hunter2"}]}},
            "has an exec with a variable without a name: write its name",
        ),
        (
            {"auth-provider": {"name": "gcp", "config": {"access-token": "hunter2"}}},
            "has the auth-provider gcp, which is not known any more: install gke-gcloud-auth-plugin, and get "
            "the credentials with gcloud again",
        ),
        (
            {"auth-provider": {"name": "oidc"}},
            "has the auth-provider oidc, which is not known any more: use an exec command that logs in, such as "
            "kubectl oidc-login",
        ),
        (
            {"auth-provider": {"name": "mine"}},
            "has the auth-provider mine, which is not known any more: use an exec command that logs in",
        ),
    ],
)
def test_an_invalid_user_entry(user: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert refused(tmp_path, config(user=user)) == f"config: user prod of context prod {message}"


def test_a_key_that_is_not_base64(tmp_path: Path) -> None:
    user = {"client-certificate-data": encoded("x"), "client-key-data": "hunter2!"}

    assert refused(tmp_path, config(user=user)) == (
        "config: user prod of context prod: client-key-data is not base64: encode the file again"
    )
