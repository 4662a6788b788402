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

from tests.cluster.access import ADMIN, USERS, Access, write_kubeconfig
from tests.cluster.assets import Assets
from tests.cluster.certificates import Authority, new_key, private_pem, public_pem
from tests.cluster.children import Child
from tests.cluster.polling import until
from tests.cluster.ports import free_port

# What removes deleted namespaces and what has no owner left, and fills the roles `view`, `edit` and `admin`. The rest
# would only look for pods.
CONTROLLERS: Final = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
)
_PATIENCE: Final = 240.0
_ISSUER: Final = "https://kubernetes.default.svc"


class NotReady(Exception):
    """The API server ended, or took too long; with the last lines of the logs."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How it differs from the usual. `arguments` are further ones for kube-apiserver."""

    # Without it nothing survives a crash of the machine, which no test can cause; and it is far quicker.
    fsync: bool = False
    controllers: Sequence[str] = ()
    arguments: Sequence[str] = ()


class Cluster:
    """One API server, whose parts a test may end, freeze and start again: `api_server`, `etcd`, `controller_manager`.

    Addresses, certificates and objects stay the same meanwhile. Enter it to start it.
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
        """Starts it for the first time, with an empty memory."""
        write_credentials(self.access)
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends it for the last time; what it stored is gone, and the logs stay."""
        self.stop()
        shutil.rmtree(self._folder / "etcd", ignore_errors=True)

    def start(self) -> None:
        """Starts what does not run, and returns when the API server is ready."""
        for child in (self.etcd, self.api_server):
            if child.pid is None:
                child.start()
        self.wait_until_ready()
        # Started sooner, it would give up after ten seconds.
        if self.controller_manager is not None and self.controller_manager.pid is None:
            self.controller_manager.start()

    def stop(self) -> None:
        """Ends all of it. An API server that has lost its etcd would hang on for minutes, so etcd is the last."""
        for child in reversed(self._children()):
            child.thaw()
            child.stop()

    def restart_api_server(self) -> None:
        """Ends the API server in good order, and starts it again where it was."""
        self.api_server.stop()
        self.api_server.start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Returns when the API server says that it is ready; NotReady when that does not come."""
        try:
            until(self._is_ready_or_ended)
        except TimeoutError as error:
            raise NotReady(f"{error}\n{self.tails()}") from error
        ended = [child.name for child in (self.etcd, self.api_server) if child.pid is None]
        if ended:
            raise NotReady(f"{' and '.join(ended)} ended\n{self.tails()}")

    def compact(self) -> None:
        """Lets etcd forget all that was before now. The API server remembers some of it until it is restarted."""
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
            # The API server makes it on its own, a moment after it says that it is ready.
            return ready and self.access.call("GET", "/api/v1/namespaces/default").status == HTTPStatus.OK
        return False

    def _children(self) -> list[Child]:
        return [self.etcd, self.api_server, *([self.controller_manager] if self.controller_manager else [])]

    def _child(self, program: Path, arguments: Sequence[str]) -> Child:
        # Nothing of the environment: a proxy, or one of the many settings that etcd reads there, must not matter.
        # Memory is spent instead of time: Go collects its garbage less often.
        environment = {"HOME": str(self._folder), "GOGC": "400"}
        return Child((str(program), *arguments), self._folder / f"{program.name}.log", self._folder, environment)

    def _ask_etcd(self, verb: str, body: object) -> Any:
        request = Request(f"{self._etcd_url}/v3/kv/{verb}", json.dumps(body).encode())
        with urlopen(request, timeout=_PATIENCE) as response:
            return json.load(response)

    def _etcd_arguments(self) -> Sequence[str]:
        return (
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            "--listen-peer-urls=http://127.0.0.1:0",
            *(() if self._settings.fsync else ("--unsafe-no-fsync",)),
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
            # There are no nodes to reach it from, and its address is one that they could not be given.
            "--endpoint-reconciler-type=none",
            # Pods are made without waiting for the account that a controller would give them.
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
