"""Who a user of a kubeconfig is: certificate, login, and whom to act as."""

import base64
import os
from dataclasses import dataclass
from typing import Final, NoReturn

from setpoint.clients.kube_config_file import ClusterEntry, Entry, ExecEntry, UserEntry, from_base64
from setpoint.clients.kube_connection import (
    Authority,
    Bearer,
    Certificate,
    Exec,
    File,
    Impersonation,
    Inline,
    Interactive,
    Login,
    Nobody,
    Password,
    Source,
    Trust,
)
from setpoint.core.values import Json
from setpoint.errors import UserError

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
# Under this name a cluster has what is meant for commands that log in.
_FOR_COMMANDS: Final = "client.authentication.k8s.io/exec"
_INSTEAD: Final = {
    "gcp": "install gke-gcloud-auth-plugin, and get the credentials with gcloud again",
    "azure": "install kubelogin, and let it convert the kubeconfig",
    "oidc": "use an exec command that logs in, such as kubectl oidc-login",
}


@dataclass(frozen=True, slots=True)
class User:
    """A user on its way to a connection. `told` is how it is called in messages."""

    entry: Entry[UserEntry]
    told: str

    def certificate(self) -> Certificate | None:
        """The client certificate, if there is one; UserError when its key is missing."""
        user = self.entry.value
        certificate = self._source("client-certificate", user.client_certificate, user.client_certificate_data)
        key = self._source("client-key", user.client_key, user.client_key_data)
        if certificate is None:
            return None
        if key is None:
            self._refuse("has a client-certificate and no client-key: write client-key or client-key-data")
        return Certificate(certificate, key)

    def login(self, cluster: ClusterEntry, server: str, trust: Trust) -> Login:
        """How to log in; UserError when there is more than one way, or one that no longer is."""
        user = self.entry.value
        if user.auth_provider is not None:
            self._refuse_provider(user.auth_provider.name)
        has_password = bool(user.username or user.password)
        if user.token and has_password:
            self._refuse("has both a token and a password: keep one of them")
        if user.token_file:
            return Bearer(File(self.entry.path(user.token_file), "tokenFile"), user.token or None)
        if user.token:
            return Bearer(Inline(user.token))
        if has_password:
            return Password(user.username, user.password)
        # As kubectl does: a command is not asked when a certificate is at hand.
        if user.exec is None or user.client_certificate or user.client_certificate_data:
            return Nobody()
        return self._exec(user.exec, _cluster_info(cluster, server, trust) if user.exec.provide_cluster_info else None)

    def impersonation(self) -> Impersonation | None:
        """Whom to act as, if it is somebody else; UserError when only their groups are named."""
        user = self.entry.value
        if user.as_user:
            extra = tuple(sorted(user.as_user_extra.items()))
            return Impersonation(user.as_user, user.as_uid, user.as_groups, extra)
        if user.as_uid or user.as_groups or user.as_user_extra:
            self._refuse("has as-uid, as-groups or as-user-extra and no as: write whom to act as")
        return None

    def _source(self, field: str, file: str, data: str) -> Source | None:
        if file and data:
            self._refuse(f"has both {field} and {field}-data: keep one of them")
        if data:
            return Inline(from_base64(data, f"{self.told}: {field}-data"))
        return File(self.entry.path(file), field) if file else None

    def _exec(self, entry: ExecEntry, cluster: Json) -> Exec:
        if not entry.command:
            self._refuse("has an exec without a command: write the command that logs in")
        if entry.api_version not in (V1, V1BETA1):
            self._refuse(f"has an exec with apiVersion {entry.api_version!r}: write {V1}, or update the command")
        mode = entry.interactive_mode or (Interactive.IF_AVAILABLE.value if entry.api_version == V1BETA1 else "")
        if mode not in tuple(Interactive):
            self._refuse(f"has an exec with interactiveMode {mode!r}: write {', '.join(Interactive)}")
        if not all(one.name for one in entry.env):
            self._refuse("has an exec with a variable without a name: write its name")
        # A bare name is looked for where commands are; a path is relative to its file.
        command = str(self.entry.path(entry.command)) if os.sep in entry.command else entry.command
        env = tuple((one.name, one.value) for one in entry.env)
        return Exec(command, entry.args, env, entry.api_version, Interactive(mode), entry.install_hint, cluster)

    def _refuse_provider(self, name: str) -> NoReturn:
        instead = _INSTEAD.get(name, "use an exec command that logs in")
        self._refuse(f"has the auth-provider {name}, which is not known any more: {instead}")

    def _refuse(self, why: str) -> NoReturn:
        raise UserError(f"{self.told} {why}")


def _cluster_info(cluster: ClusterEntry, server: str, trust: Trust) -> Json:
    """What a command is told about the cluster; only what is set."""
    authority = base64.b64encode(trust.pem.encode()).decode() if isinstance(trust, Authority) else ""
    config = next((one.extension for one in cluster.extensions if one.name == _FOR_COMMANDS), None)
    info: dict[str, Json] = {
        "server": server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authority,
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": config,
    }
    return {name: value for name, value in info.items() if value}
