"""Access of tests to an API server, from any process."""

import base64
import http.client
import json
import secrets
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import yaml

from tests.cluster.polling import until

# The administrator may do everything, the users nothing: a test grants them the permissions that it needs.
ADMIN: Final = "admin"
USERS: Final = ("alice", "bob")
ANONYMOUS: Final = "anonymous"

# Longer than the request timeout of the API server, so that its own error is shown.
_TIMEOUT_SECONDS: Final = 90.0
_MERGE_PATCH: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the API server: the HTTP status, and the decoded body."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class Access:
    """An API server at `url`; `folder` holds its certificates and tokens.

    `kubectl` is `None` when there is none. `has_controllers` says whether a controller manager runs, which
    finalizes namespaces and collects garbage.
    """

    url: str
    folder: Path
    kubectl: Path | None
    has_controllers: bool

    @property
    def certificate_authority(self) -> Path:
        """The certificate of the authority that signed the server's."""
        return self.folder / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator, with a client certificate."""
        return self.kubeconfig_of(ADMIN)

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of one of `USERS`, with a token, or of the administrator."""
        return self.folder / f"{user}.kubeconfig"

    def token_of(self, user: str) -> str:
        """The token of one of `USERS`."""
        return (self.folder / f"{user}.token").read_text(encoding="utf-8")

    def tls(self, user: str = ADMIN) -> ssl.SSLContext:
        """Trusts this server alone; the administrator's has a client certificate."""
        return _tls(self.folder, self.certificate_authority, is_admin=user == ADMIN)

    def call(
        self, method: str, path: str, body: object = None, *, user: str = ADMIN, patch_type: str = _MERGE_PATCH
    ) -> Answer:
        """Sends a request; a PATCH is a merge patch, unless said otherwise. OSError when no server can be reached."""
        headers = {"Accept": "application/json"}
        if user in USERS:
            headers["Authorization"] = f"Bearer {self.token_of(user)}"
        if body is not None:
            headers["Content-Type"] = patch_type if method == "PATCH" else "application/json"
        request = _Request(method, path, None if body is None else json.dumps(body), headers)
        idle = _take_idle(self.url, user)
        if idle is not None:
            # The server may have been restarted, or have closed the idle connection: then a new one is opened.
            with suppress(ConnectionError, ssl.SSLError, http.client.BadStatusLine):
                return self._send(request, idle, user)
        netloc = urlsplit(self.url).netloc
        return self._send(
            request, http.client.HTTPSConnection(netloc, context=self.tls(user), timeout=_TIMEOUT_SECONDS), user
        )

    def until_permitted(
        self, user: str, verb: str, resource: str, namespace: str, *, is_permitted: bool = True
    ) -> None:
        """Returns when the authorizer knows of a binding, or of its deletion: it learns of them from a watch.

        `resource` is `plural` or `plural.group`.
        """
        plural, _, group = resource.partition(".")
        attributes = {"verb": verb, "resource": plural, "group": group, "namespace": namespace}
        review = {"spec": {"user": user, "resourceAttributes": attributes}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        until(lambda: self.call("POST", path, review).body["status"]["allowed"] is is_permitted)

    def _send(self, request: "_Request", connection: http.client.HTTPSConnection, user: str) -> Answer:
        try:
            connection.request(*request)
            response = connection.getresponse()
            text = response.read().decode()
        except BaseException:
            connection.close()
            raise
        _keep_idle(self.url, user, connection)
        is_json = response.headers.get_content_type() == "application/json"
        return Answer(response.status, _decoded(text) if is_json else text)

    def new_namespace(self, *, is_tenant: bool = True, project: str = "some-project") -> str:
        """The name of a new namespace; with the ServiceAccount that controllers act as there, which may do anything.

        Its resources are in this Google project; with an empty text, an administrator has yet to say in which.
        """
        name = f"test-{secrets.token_hex(6)}"
        annotations = {"cnrm.cloud.google.com/project-id": project} if project else {}
        made = self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "annotations": annotations}})
        assert made.status == http.client.CREATED, made
        if is_tenant:
            self.make_tenant(name)
        return name

    def make_tenant(self, namespace: str, role: str = "cluster-admin", *, everywhere: bool = True) -> None:
        """Makes the ServiceAccount that a controller acts as for this namespace, and binds it to a ClusterRole."""
        account: dict[str, object] = {"name": "setpoint", "namespace": namespace}
        made = self.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": account})
        assert made.status == http.client.CREATED, made
        binding = {
            "metadata": {"name": f"tenant-{namespace}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
        where = "clusterrolebindings" if everywhere else f"namespaces/{namespace}/rolebindings"
        made = self.call("POST", f"/apis/rbac.authorization.k8s.io/v1/{where}", binding)
        assert made.status == http.client.CREATED, made

    def delete_namespace(self, name: str) -> None:
        """Deletes a namespace, without waiting until it is gone."""
        deleted = self.call("DELETE", f"/api/v1/namespaces/{name}")
        assert deleted.status in (http.client.OK, http.client.ACCEPTED, http.client.NOT_FOUND), deleted


class _Request(NamedTuple):
    method: str
    path: str
    body: str | None
    headers: Mapping[str, str]


# By URL and user: connections that no thread uses now. A TLS handshake takes longer than most requests.
_idle: Final[dict[tuple[str, str], list[http.client.HTTPSConnection]]] = {}
_idle_lock: Final = threading.Lock()


def _take_idle(url: str, user: str) -> http.client.HTTPSConnection | None:
    with _idle_lock:
        connections = _idle.get((url, user))
        return connections.pop() if connections else None


def _keep_idle(url: str, user: str, connection: http.client.HTTPSConnection) -> None:
    with _idle_lock:
        _idle.setdefault((url, user), []).append(connection)


def close_idle_connections(url: str | None = None) -> None:
    """Closes the idle connections to this API server, or to all of them."""
    with _idle_lock:
        for key in [key for key in _idle if url in (None, key[0])]:
            for connection in _idle.pop(key):
                connection.close()


@cache
def _tls(folder: Path, authority: Path, *, is_admin: bool) -> ssl.SSLContext:
    """Made once: reading the files takes longer than a request."""
    context = ssl.create_default_context(cafile=authority)
    if is_admin:
        context.load_cert_chain(folder / f"{ADMIN}.crt", folder / f"{ADMIN}.key")
    return context


def write_kubeconfig(access: Access, user: str) -> None:
    """Writes the kubeconfig of `user`, with all credentials inline, so that it can be copied."""
    _write_kubeconfig(access, user, _credentials(access, user), access.kubeconfig_of(user))


def write_account_kubeconfig(access: Access, namespace: str, account: str, file: Path) -> None:
    """Writes a kubeconfig with a token of a ServiceAccount, as its pods have one."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    answer = access.call("POST", path, {"spec": {"expirationSeconds": 86400}})
    assert answer.status == http.client.CREATED, answer
    _write_kubeconfig(access, account, {"token": answer.body["status"]["token"]}, file)


def _write_kubeconfig(access: Access, user: str, credentials: Mapping[str, str], file: Path) -> None:
    cluster = {"server": access.url, "certificate-authority-data": _base64(access.certificate_authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": user, "user": dict(credentials)}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
        "current-context": "tests",
    }
    file.write_text(yaml.safe_dump(content), encoding="utf-8")


def _credentials(access: Access, user: str) -> dict[str, str]:
    if user != ADMIN:
        return {"token": access.token_of(user)}
    certificate, key = (access.folder / f"{ADMIN}.{suffix}" for suffix in ("crt", "key"))
    return {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}


def _base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def _decoded(text: str) -> Any:
    """A list of all objects of a kind may have one of another test that is too deep to be decoded: then, its text."""
    try:
        return json.loads(text)
    except RecursionError:
        return text
