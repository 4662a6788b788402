"""Resolves a context of a kubeconfig, or the service account of a pod, to a connection."""

import base64
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NoReturn, TypeGuard
from urllib.parse import SplitResult, urlsplit

from setpoint.clients.kubernetes.kubeconfig import (
    BasicAuth,
    BearerToken,
    CertificateAuthority,
    ClientCertificate,
    ClusterConnection,
    ClusterEntry,
    ConfigEntry,
    ContextEntry,
    ExecEntry,
    ExecPlugin,
    FileText,
    Impersonation,
    InlineText,
    InteractiveMode,
    Login,
    MergedKubeconfig,
    NoLogin,
    ServerTrust,
    SkipVerify,
    SystemRoots,
    TextSource,
    UserEntry,
    decode_base64,
    load_files,
    load_text,
)
from setpoint.clients.sockets import SERVICE_HOST
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.errors import UserError

KUBECONFIG: Final = "KUBECONFIG"
_NOT_IN_HOST: Final = re.compile(r"[\s\x00-\x1f\x7f\\]")
HOST, PORT = SERVICE_HOST, "KUBERNETES_SERVICE_PORT"
# Mounted into every pod.
SERVICE_ACCOUNT_DIR: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
# The extension of a cluster that is passed to exec plugins.
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
_AUTH_PROVIDER_REPLACEMENTS: Final = {
    "gcp": "install gke-gcloud-auth-plugin, and get the credentials with gcloud again",
    "azure": "install kubelogin, and let it convert the kubeconfig",
    "oidc": "use an exec command that logs in, such as kubectl oidc-login",
}


def connection_from_environment(
    environment: Mapping[str, str], context: str | None = None, account: Path = SERVICE_ACCOUNT_DIR
) -> ClusterConnection:
    """The connection of `context`, of KUBECONFIG, of the pod that this process runs in, or of `~/.kube/config`.

    UserError says what is missing or wrong, and in which file.
    """
    if context is None and _is_in_cluster(environment, account):
        return in_cluster_connection(environment, account)
    return connection_from_files(_kubeconfig_files(environment), context)


def current_context(environment: Mapping[str, str], account: Path = SERVICE_ACCOUNT_DIR) -> str | None:
    """The context that `connection_from_environment` uses by default; None for the cluster of this pod."""
    if _is_in_cluster(environment, account):
        return None
    return context_name(_load(_kubeconfig_files(environment)), None)


def _is_in_cluster(environment: Mapping[str, str], account: Path) -> bool:
    return bool(not environment.get(KUBECONFIG) and environment.get(HOST) and (account / "token").exists())


def _kubeconfig_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    home = environment.get("HOME") or str(Path.home())
    named = environment.get(KUBECONFIG, "").split(os.pathsep)
    return tuple(Path(name) for name in named if name) or (Path(home, ".kube", "config"),)


def in_cluster_connection(environment: Mapping[str, str], account: Path = SERVICE_ACCOUNT_DIR) -> ClusterConnection:
    """The cluster that this process runs in, with the service account of its pod."""
    host, port = environment[HOST], environment.get(PORT) or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        authority = (account / "ca.crt").read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {account / 'ca.crt'}: {error.strerror}: mount the service account") from error
    namespace = account / "namespace"
    return ClusterConnection(
        "the cluster around this pod",
        server,
        CertificateAuthority(authority),
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default",
        login=BearerToken(FileText(account / "token", "the service account's token")),
    )


def connection_from_files(files: Iterable[Path], context: str | None = None) -> ClusterConnection:
    """The connection of `context` in these files, or of the current context."""
    config = _load(tuple(files))
    return ContextResolver(config, context_name(config, context)).connection()


def connection_from_trusted_text(text: str, source: str, context: str | None = None) -> ClusterConnection:
    """The same for the text of a kubeconfig, which may name files and exec plugins; `source` names it in messages."""
    config = load_text(text, source)
    return ContextResolver(config, context_name(config, context)).connection()


def _load(files: tuple[Path, ...]) -> MergedKubeconfig:
    config = load_files(files)
    if not config.files:
        paths = ", ".join(map(str, files))
        raise UserError(f"there is no kubeconfig at {paths}: put one there, or name one in {KUBECONFIG}")
    return config


def context_name(config: MergedKubeconfig, context: str | None) -> str:
    """The name of the context to use: `context`, else the current one; UserError when there is none of that name."""
    name, known = context or config.current_context, ", ".join(config.contexts) or "none"
    if not name:
        raise UserError(
            f"{config}: no context is chosen: run `kubectl config use-context NAME`, or name one; there is {known}"
        )
    if name not in config.contexts:
        raise UserError(f"{config}: there is no context {name}: name one of these: {known}")
    return name


@dataclass(frozen=True, slots=True)
class ContextResolver:
    """Resolves one context of a kubeconfig."""

    config: MergedKubeconfig
    name: str

    def connection(self) -> ClusterConnection:
        """Its connection; UserError says what is missing or wrong."""
        context = self.config.contexts[self.name].value
        cluster = self._cluster(context)
        entry = cluster.value
        server = self._server(entry)
        trust = self._trust(cluster)
        user = self._user(context)
        return ClusterConnection(
            f"context {self.name} of {self.config}",
            server,
            trust,
            entry.tls_server_name or None,
            self._proxy(entry),
            compressed=not entry.disable_compression,
            namespace=context.namespace or "default",
            certificate=user.certificate(),
            login=user.login(entry, server, trust),
            impersonation=user.impersonation(),
        )

    def _cluster(self, context: ContextEntry) -> ConfigEntry[ClusterEntry]:
        found = self.config.clusters.get(context.cluster)
        if found is None:
            self._refuse(f"its cluster {context.cluster!r} is in none of these files: write one that is")
        return found

    def _user(self, context: ContextEntry) -> "KubeconfigUser":
        if not context.user:
            return KubeconfigUser(ConfigEntry(UserEntry(), Path()), self._label("user"))
        found = self.config.users.get(context.user)
        if found is None:
            self._refuse(f"its user {context.user!r} is in none of these files: write one that is")
        return KubeconfigUser(found, f"{found.file}: user {context.user} of context {self.name}")

    def _server(self, entry: ClusterEntry) -> str:
        if not entry.server:
            self._refuse("its cluster has no server: write the address of the API server, such as https://host:6443")
        server = entry.server if "://" in entry.server else f"{_default_scheme(entry)}://{entry.server}"
        parts = url_parts(server)
        if not is_http(parts):
            self._refuse(f"its server is {entry.server!r}: write an address such as https://host:6443")
        return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")

    def _trust(self, cluster: ConfigEntry[ClusterEntry]) -> ServerTrust:
        entry = cluster.value
        if entry.certificate_authority and entry.certificate_authority_data:
            self._refuse("certificate-authority and certificate-authority-data are both set: keep one of them")
        if entry.insecure_skip_tls_verify:
            if entry.certificate_authority or entry.certificate_authority_data:
                self._refuse("insecure-skip-tls-verify leaves no use for a certificate authority: keep one of them")
            return SkipVerify()
        if entry.certificate_authority_data:
            return CertificateAuthority(
                decode_base64(entry.certificate_authority_data, self._label("certificate-authority-data"))
            )
        if entry.certificate_authority:
            return CertificateAuthority(self._read(cluster.path(entry.certificate_authority)))
        return SystemRoots()

    def _read(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            self._refuse(f"cannot read its certificate-authority {path}: {error.strerror}: put it there", error)

    def _proxy(self, entry: ClusterEntry) -> str | None:
        if not entry.proxy_url:
            return None
        parts = url_parts(entry.proxy_url)
        if not is_http(parts):
            scheme = "?" if parts is None else parts.scheme or "?"
            self._refuse(f"its proxy-url is a {scheme} address: only http and https proxies are known here")
        return entry.proxy_url

    def _label(self, field: str) -> str:
        return f"{self.config}: {field} of context {self.name}"

    def _refuse(self, why: str, error: Exception | None = None) -> NoReturn:
        raise UserError(f"{self.config}: context {self.name}: {why}") from error


def url_parts(url: str) -> SplitResult | None:
    """The parts of a URL; None when it is none: its host or port cannot be read."""
    try:
        parts = urlsplit(url)
        # Read only when it is asked for.
        _ = parts.port
    except ValueError:
        return None
    return None if _NOT_IN_HOST.search(parts.netloc) else parts


def is_http(parts: SplitResult | None) -> TypeGuard[SplitResult]:
    """Whether it is the address of a server or a proxy that is spoken to by HTTP."""
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)


def _default_scheme(entry: ClusterEntry) -> str:
    has_tls = entry.certificate_authority or entry.certificate_authority_data or entry.insecure_skip_tls_verify
    return "https" if has_tls else "http"


@dataclass(frozen=True, slots=True)
class KubeconfigUser:
    """Resolves a user of a kubeconfig. `label` names it in messages."""

    entry: ConfigEntry[UserEntry]
    label: str

    def certificate(self) -> ClientCertificate | None:
        """The client certificate, if there is one; UserError when its key is missing."""
        user = self.entry.value
        certificate = self._source("client-certificate", user.client_certificate, user.client_certificate_data)
        key = self._source("client-key", user.client_key, user.client_key_data)
        if certificate is None:
            return None
        if key is None:
            self._refuse("has a client-certificate and no client-key: write client-key or client-key-data")
        return ClientCertificate(certificate, key)

    def login(self, cluster: ClusterEntry, server: str, trust: ServerTrust) -> Login:
        """How to log in; UserError when several ways are set, or one that is no longer supported."""
        user = self.entry.value
        if user.auth_provider is not None:
            self._refuse_provider(user.auth_provider.name)
        has_password = bool(user.username or user.password)
        if user.token and has_password:
            self._refuse("has both a token and a password: keep one of them")
        if user.token_file:
            return BearerToken(FileText(self.entry.path(user.token_file), "tokenFile"), user.token or None)
        if user.token:
            return BearerToken(InlineText(user.token))
        if has_password:
            return BasicAuth(user.username, user.password)
        # As kubectl does: with a certificate the exec plugin is not run.
        if user.exec is None or user.client_certificate or user.client_certificate_data:
            return NoLogin()
        return self._exec(user.exec, _cluster_info(cluster, server, trust) if user.exec.provide_cluster_info else None)

    def impersonation(self) -> Impersonation | None:
        """The user to impersonate, if any; UserError when only the groups are given."""
        user = self.entry.value
        if user.as_user:
            extra = tuple(sorted(user.as_user_extra.items()))
            texts = (user.as_user, user.as_uid, *user.as_groups, *(one for _, values in extra for one in values))
            if not all(text.isprintable() for text in texts):
                self._refuse("has an as, as-uid, as-groups or as-user-extra that no header can hold: write plain text")
            return Impersonation(user.as_user, user.as_uid, user.as_groups, extra)
        if user.as_uid or user.as_groups or user.as_user_extra:
            self._refuse("has as-uid, as-groups or as-user-extra and no as: write whom to act as")
        return None

    def _source(self, field: str, file: str, data: str) -> TextSource | None:
        if file and data:
            self._refuse(f"has both {field} and {field}-data: keep one of them")
        if data:
            return InlineText(decode_base64(data, f"{self.label}: {field}-data"))
        return FileText(self.entry.path(file), field) if file else None

    def _exec(self, entry: ExecEntry, cluster: Json) -> ExecPlugin:
        if not entry.command:
            self._refuse("has an exec without a command: write the command that logs in")
        if entry.api_version not in (V1, V1BETA1):
            self._refuse(f"has an exec with apiVersion {entry.api_version!r}: write {V1}, or update the command")
        mode = entry.interactive_mode or (InteractiveMode.IF_AVAILABLE.value if entry.api_version == V1BETA1 else "")
        if mode not in tuple(InteractiveMode):
            self._refuse(f"has an exec with interactiveMode {mode!r}: write {', '.join(InteractiveMode)}")
        if not all(one.name for one in entry.env):
            self._refuse("has an exec with a variable without a name: write its name")
        # A bare name is searched on the PATH; a path is relative to the kubeconfig.
        command = str(self.entry.path(entry.command)) if os.sep in entry.command else entry.command
        env = tuple((one.name, one.value) for one in entry.env)
        return ExecPlugin(
            command, entry.args, env, entry.api_version, InteractiveMode(mode), entry.install_hint, cluster
        )

    def _refuse_provider(self, name: str) -> NoReturn:
        instead = _AUTH_PROVIDER_REPLACEMENTS.get(name, "use an exec command that logs in")
        self._refuse(f"has the auth-provider {name}, which is not known any more: {instead}")

    def _refuse(self, why: str) -> NoReturn:
        raise UserError(f"{self.label} {why}")


def _cluster_info(cluster: ClusterEntry, server: str, trust: ServerTrust) -> Json:
    """The cluster as passed to an exec plugin; only what is set."""
    authority = base64.b64encode(trust.pem.encode()).decode() if isinstance(trust, CertificateAuthority) else ""
    config = next((one.extension for one in cluster.extensions if one.name == _EXEC_EXTENSION), None)
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
