"""How to reach a cluster: from kubeconfig files as kubectl reads them, or from inside of it."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import urlsplit

from setpoint.clients.kube_config_file import (
    ClusterEntry,
    ContextEntry,
    Entry,
    KubeConfig,
    UserEntry,
    from_base64,
    read_all,
    read_text,
)
from setpoint.clients.kube_connection import (
    Anybody,
    Authority,
    Bearer,
    Connection,
    File,
    SystemRoots,
    Trust,
)
from setpoint.clients.kube_user import User
from setpoint.errors import UserError

KUBECONFIG: Final = "KUBECONFIG"
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
# What every pod is given.
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def connection_from(environment: Mapping[str, str], context: str | None = None, account: Path = ACCOUNT) -> Connection:
    """The cluster that is meant: by `context`, by KUBECONFIG, the one around us, or that of `~/.kube/config`.

    UserError says what is missing or wrong, and in which file.
    """
    if context is None and _is_around(environment, account):
        return in_cluster(environment, account)
    return from_files(_files(environment), context)


def current_context(environment: Mapping[str, str], account: Path = ACCOUNT) -> str | None:
    """The name of the context that `connection_from` takes when none is named; None for the cluster around us."""
    if _is_around(environment, account):
        return None
    return _name_of(_read(_files(environment)), None)


def _is_around(environment: Mapping[str, str], account: Path) -> bool:
    return bool(not environment.get(KUBECONFIG) and environment.get(HOST) and (account / "token").exists())


def _files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    home = environment.get("HOME") or str(Path.home())
    named = environment.get(KUBECONFIG, "").split(os.pathsep)
    return tuple(Path(name) for name in named if name) or (Path(home, ".kube", "config"),)


def in_cluster(environment: Mapping[str, str], account: Path = ACCOUNT) -> Connection:
    """The cluster that this process runs in, as the service account of its pod."""
    host, port = environment[HOST], environment.get(PORT) or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        authority = (account / "ca.crt").read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {account / 'ca.crt'}: {error.strerror}: mount the service account") from error
    namespace = account / "namespace"
    return Connection(
        "the cluster around this pod",
        server,
        Authority(authority),
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default",
        login=Bearer(File(account / "token", "the service account's token")),
    )


def from_files(files: Iterable[Path], context: str | None = None) -> Connection:
    """The cluster and the user of `context` in these files, or of the current context."""
    config = _read(tuple(files))
    return _Chosen(config, _name_of(config, context)).connection()


def from_text(text: str, source: str, context: str | None = None) -> Connection:
    """The same for a kubeconfig that somebody handed over; `source` is how it is called in messages.

    What it would have to read or run on this machine is not its author's to choose: UserError.
    """
    config = read_text(text, source)
    name = _name_of(config, context)
    _require_whole(config, name)
    return _Chosen(config, name).connection()


def from_own_text(text: str, source: str, context: str | None = None) -> Connection:
    """The same for one that whoever runs this process has written: it may name files, and commands that log in."""
    config = read_text(text, source)
    return _Chosen(config, _name_of(config, context)).connection()


def _read(files: tuple[Path, ...]) -> KubeConfig:
    config = read_all(files)
    if not config.files:
        looked_at = ", ".join(map(str, files))
        raise UserError(f"there is no kubeconfig at {looked_at}: put one there, or name one in {KUBECONFIG}")
    return config


def _require_whole(config: KubeConfig, name: str) -> None:
    context = config.contexts[name].value
    cluster, user = config.clusters.get(context.cluster), config.users.get(context.user)
    at_hand = {
        "certificate-authority": cluster is not None and cluster.value.certificate_authority,
        "client-certificate": user is not None and user.value.client_certificate,
        "client-key": user is not None and user.value.client_key,
        "tokenFile": user is not None and user.value.token_file,
        "exec": user is not None and user.value.exec is not None,
    }
    if said := [field for field, found in at_hand.items() if found]:
        raise UserError(
            f"{config}: context {name}: {', '.join(said)}: a kubeconfig that is handed over reads no files and runs no "
            "commands here: write the certificates, the key and the token themselves"
        )


def _name_of(config: KubeConfig, context: str | None) -> str:
    name, known = context or config.current_context, ", ".join(config.contexts) or "none"
    if not name:
        raise UserError(
            f"{config}: no context is chosen: run `kubectl config use-context NAME`, or name one; there is {known}"
        )
    if name not in config.contexts:
        raise UserError(f"{config}: there is no context {name}: name one of these: {known}")
    return name


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A context, on its way to a connection."""

    config: KubeConfig
    name: str

    def connection(self) -> Connection:
        context = self.config.contexts[self.name].value
        cluster = self._cluster(context)
        entry = cluster.value
        server = self._server(entry)
        trust = self._trust(cluster)
        user = self._user(context)
        return Connection(
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

    def _cluster(self, context: ContextEntry) -> Entry[ClusterEntry]:
        found = self.config.clusters.get(context.cluster)
        if found is None:
            self._refuse(f"its cluster {context.cluster!r} is in none of these files: write one that is")
        return found

    def _user(self, context: ContextEntry) -> User:
        if not context.user:
            return User(Entry(UserEntry(), Path()), self._told("user"))
        found = self.config.users.get(context.user)
        if found is None:
            self._refuse(f"its user {context.user!r} is in none of these files: write one that is")
        return User(found, f"{found.file}: user {context.user} of context {self.name}")

    def _server(self, entry: ClusterEntry) -> str:
        if not entry.server:
            self._refuse("its cluster has no server: write the address of the API server, such as https://host:6443")
        server = entry.server if "://" in entry.server else f"{_scheme(entry)}://{entry.server}"
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            self._refuse(f"its server is {entry.server!r}: write an address such as https://host:6443")
        return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")

    def _trust(self, cluster: Entry[ClusterEntry]) -> Trust:
        entry = cluster.value
        if entry.certificate_authority and entry.certificate_authority_data:
            self._refuse("certificate-authority and certificate-authority-data are both set: keep one of them")
        if entry.insecure_skip_tls_verify:
            if entry.certificate_authority or entry.certificate_authority_data:
                self._refuse("insecure-skip-tls-verify leaves no use for a certificate authority: keep one of them")
            return Anybody()
        if entry.certificate_authority_data:
            return Authority(from_base64(entry.certificate_authority_data, self._told("certificate-authority-data")))
        if entry.certificate_authority:
            return Authority(self._read(cluster.path(entry.certificate_authority)))
        return SystemRoots()

    def _read(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            self._refuse(f"cannot read its certificate-authority {path}: {error.strerror}: put it there", error)

    def _proxy(self, entry: ClusterEntry) -> str | None:
        if not entry.proxy_url:
            return None
        parts = urlsplit(entry.proxy_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            self._refuse(
                f"its proxy-url is a {parts.scheme or '?'} address: only http and https proxies are known here"
            )
        return entry.proxy_url

    def _told(self, field: str) -> str:
        return f"{self.config}: {field} of context {self.name}"

    def _refuse(self, why: str, error: Exception | None = None) -> NoReturn:
        raise UserError(f"{self.config}: context {self.name}: {why}") from error


def _scheme(entry: ClusterEntry) -> str:
    has_tls = entry.certificate_authority or entry.certificate_authority_data or entry.insecure_skip_tls_verify
    return "https" if has_tls else "http"
