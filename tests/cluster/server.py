"""A real API server on the loopback device: etcd, kube-apiserver and, when asked for, some of the controllers."""

import json
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.request import Request, urlopen

from tests.cluster.access import ADMIN, USERS, Access, close_idle_connections, write_kubeconfig
from tests.cluster.assets import Assets
from tests.cluster.certificates import Authority, new_key, private_pem, public_pem
from tests.cluster.children import Child
from tests.cluster.polling import until
from tests.cluster.ports import free_port

# They finalize namespaces, collect garbage, and aggregate the roles `view`, `edit` and `admin`. The others manage pods.
CONTROLLERS: Final = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
)
_TIMEOUT_SECONDS: Final = 240.0
_ISSUER: Final = "https://kubernetes.default.svc"


class NotReady(Exception):
    """The API server ended, or was not ready in time; with the last lines of the logs."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an API server. `arguments` are further arguments of kube-apiserver."""

    controllers: Sequence[str] = ()
    arguments: Sequence[str] = ()


class Cluster:
    """One API server, whose processes a test may kill, freeze and restart: `api_server`, `etcd`, `controller_manager`.

    Addresses, certificates and objects survive a restart. Enter it to start it.
    """

    def __init__(self, assets: Assets, folder: Path, settings: Settings) -> None:
        self._assets = assets
        self._folder = folder
        self._settings = settings
        self._etcd_url = f"http://127.0.0.1:{free_port()}"
        self._port = free_port()
        manager = assets.kube_controller_manager if settings.controllers else None
        self.access = Access(f"https://127.0.0.1:{self._port}", folder, assets.kubectl, has_controllers=bool(manager))
        self.etcd = self._child(assets.etcd, self._etcd_arguments())
        self.api_server = self._child(assets.kube_apiserver, self._api_server_arguments())
        self.controller_manager = self._child(manager, self._manager_arguments()) if manager else None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Starts it for the first time, with an empty etcd."""
        write_credentials(self.access)
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stops it and removes the data of etcd; the logs stay."""
        close_idle_connections(self.access.url)
        self.stop()
        shutil.rmtree(self._folder / "etcd", ignore_errors=True)

    def start(self) -> None:
        """Starts the processes that do not run, and returns when the API server is ready."""
        for child in (self.etcd, self.api_server):
            if child.pid is None:
                child.start()
        self.wait_until_ready()
        # Without an API server it would exit after ten seconds.
        if self.controller_manager is not None and self.controller_manager.pid is None:
            self.controller_manager.start()

    def stop(self) -> None:
        """Stops all processes. etcd is the last: without it, the API server would take minutes to end."""
        for child in reversed(self._children()):
            child.thaw()
            child.stop()

    def restart_api_server(self) -> None:
        """Stops the API server by SIGTERM, which ends open watches, and starts it again at the same address."""
        self.api_server.stop()
        self.api_server.start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Returns when the API server says that it is ready; NotReady when it ends, or after five minutes."""
        try:
            until(self._is_ready_or_ended)
        except TimeoutError as error:
            raise NotReady(f"{error}\n{self.tails()}") from error
        ended = [child.name for child in (self.etcd, self.api_server) if child.pid is None]
        if ended:
            raise NotReady(f"{' and '.join(ended)} ended\n{self.tails()}")

    def compact(self) -> None:
        """Compacts etcd to the present revision. The watch cache of the API server is kept until it is restarted."""
        revision = self._ask_etcd("range", {"key": "AA=="})["header"]["revision"]
        self._ask_etcd("compaction", {"revision": revision, "physical": True})

    def tails(self) -> str:
        """The last lines of each log."""
        return "\n".join(f"--- {child.log.name}\n{child.tail()}" for child in self._children())

    def _is_ready_or_ended(self) -> bool:
        if self.etcd.pid is None or self.api_server.pid is None:
            return True
        with suppress(OSError):
            ready = self.access.call("GET", "/readyz").status == HTTPStatus.OK
            # The API server creates it by itself, shortly after it is ready.
            return ready and self.access.call("GET", "/api/v1/namespaces/default").status == HTTPStatus.OK
        return False

    def _children(self) -> list[Child]:
        return [self.etcd, self.api_server, *([self.controller_manager] if self.controller_manager else [])]

    def _child(self, program: Path, arguments: Sequence[str]) -> Child:
        # No variable of the environment: neither a proxy nor a setting of etcd may change the servers.
        # Memory is spent instead of time: Go collects its garbage less often.
        environment = {"HOME": str(self._folder), "GOGC": "400"}
        return Child((str(program), *arguments), self._folder / f"{program.name}.log", self._folder, environment)

    def _ask_etcd(self, verb: str, body: object) -> Any:
        request = Request(f"{self._etcd_url}/v3/kv/{verb}", json.dumps(body).encode())
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
            return json.load(response)

    def _etcd_arguments(self) -> Sequence[str]:
        return (
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            "--listen-peer-urls=http://127.0.0.1:0",
            # Data survives kill -9 without it; only a crash of the machine would lose some.
            "--unsafe-no-fsync",
        )

    def _api_server_arguments(self) -> Sequence[str]:
        folder = self._folder
        return (
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={folder / 'server.crt'}",
            f"--tls-private-key-file={folder / 'server.key'}",
            f"--client-ca-file={folder / 'ca.crt'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            f"--service-account-issuer={_ISSUER}",
            f"--service-account-key-file={folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={folder / 'accounts.key'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            # No node reaches it, and a loopback address is no valid endpoint.
            "--endpoint-reconciler-type=none",
            # Open watches end when it is stopped; otherwise it would wait for them for a minute.
            "--shutdown-watch-termination-grace-period=10s",
            # Pods are created without a service account, which a controller would have to create.
            "--disable-admission-plugins=ServiceAccount",
            *self._settings.arguments,
        )

    def _manager_arguments(self) -> Sequence[str]:
        return (
            f"--kubeconfig={self.access.kubeconfig}",
            f"--controllers={','.join(self._settings.controllers)}",
            "--leader-elect=false",
            "--secure-port=0",
        )


def write_credentials(access: Access) -> None:
    """Writes all certificates, keys and tokens into the server's folder, and a kubeconfig for each user."""
    folder = access.folder
    authority, accounts = Authority(), new_key()
    access.certificate_authority.write_bytes(authority.certificate)
    server = authority.for_server("localhost", "kubernetes", "kubernetes.default.svc")
    for name, pair in ("server", server), (ADMIN, authority.for_user(ADMIN, ["system:masters"])):
        (folder / f"{name}.crt").write_bytes(pair.certificate)
        (folder / f"{name}.key").write_bytes(pair.key)
    (folder / "accounts.key").write_bytes(private_pem(accounts))
    (folder / "accounts.pub").write_bytes(public_pem(accounts))
    tokens = {user: secrets.token_hex(16) for user in USERS}
    for user, token in tokens.items():
        (folder / f"{user}.token").write_text(token, encoding="utf-8")
    lines = [f"{token},{user},{user}\n" for user, token in tokens.items()]
    (folder / "tokens.csv").write_text("".join(lines), encoding="utf-8")
    for user in (ADMIN, *USERS):
        write_kubeconfig(access, user)
