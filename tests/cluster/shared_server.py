"""The API servers of a test run that all xdist workers share.

The process that starts the workers is the coordinator: it finds the programs and starts each server once, on the first
request. Workers send their requests over a socket.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.cluster.access import Access
from tests.cluster.assets import Assets, Found, Missing, find
from tests.cluster.progress import Progress
from tests.cluster.server import CONTROLLERS, Cluster, Settings


class ServerRequest(Enum):
    """A request of a worker."""

    BEGIN = "find or build the programs"
    ASSETS = "return the programs"
    SERVER = "return the shared server"
    OTHER_SERVER = "return the second shared server"


_SETTINGS: Final = {
    ServerRequest.SERVER: Settings(controllers=CONTROLLERS),
    ServerRequest.OTHER_SERVER: Settings(),
}


class Coordinator:
    """Finds the programs and starts the shared servers, each once. Their files are in `folder`."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._progress = Progress(report)
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(thread_name_prefix="coordinator")
        self.folder = Path(tempfile.mkdtemp(prefix="setpoint-tests-"))
        self._assets: Future[Found] | None = None
        self._clusters: dict[ServerRequest, Future[Cluster | Missing]] = {}
        self._listener: Listener | None = None

    def begin(self) -> None:
        """Starts to find or build the programs in the background."""
        with self._lock:
            if self._assets is None:
                self._assets = self._threads.submit(find, os.environ, self._progress)

    def assets(self) -> Found:
        """The programs, once they are found or built."""
        self.begin()
        assert self._assets is not None
        return self._assets.result()

    def server(self) -> Access | Missing:
        """The shared server, once it is ready."""
        return self._access_to(ServerRequest.SERVER)

    def other_server(self) -> Access | Missing:
        """The second shared server, once it is ready."""
        return self._access_to(ServerRequest.OTHER_SERVER)

    def _access_to(self, server: ServerRequest) -> Access | Missing:
        with self._lock:
            if server not in self._clusters:
                self._clusters[server] = self._threads.submit(self._start, server)
            starting = self._clusters[server]
        found = starting.result()
        return found if isinstance(found, Missing) else found.access

    def listen(self) -> str:
        """The address at which requests of workers are served."""
        address = self.folder / "coordinator.sock"
        if self._listener is None:
            self._listener = Listener(str(address), family="AF_UNIX")
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return str(address)

    def cancel(self) -> None:
        """Cancels a build; its waiters get an error."""
        self._progress.cancel()

    def close(self) -> None:
        """Stops the servers and a running build."""
        self.cancel()
        for started in self._clusters.values():
            # A failed start was raised where the server was requested.
            if started.exception() is None and isinstance(found := started.result(), Cluster):
                found.close()
        self._threads.shutdown()
        if self._listener is not None:
            self._listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, server: ServerRequest) -> Cluster | Missing:
        match self.assets():
            case Missing() as missing:
                return missing
            case Assets() as assets:
                folder = self.folder / server.name.lower()
                folder.mkdir()
                cluster = Cluster(assets, folder, _SETTINGS[server])
                cluster.open()
                return cluster

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:
                # The coordinator has closed.
                return
            threading.Thread(target=self._serve_worker, args=(connection,), daemon=True).start()

    def _serve_worker(self, connection: "Connection[Any, Any]") -> None:
        # The worker was stopped before it got the result.
        with connection, suppress(EOFError, BrokenPipeError, ConnectionResetError):
            request = connection.recv()
            try:
                result = self._result_for(request)
            except Exception as error:  # noqa: BLE001 - it is raised again in the worker
                result = error
            connection.send(result)

    def _result_for(self, request: ServerRequest) -> object:
        match request:
            case ServerRequest.BEGIN:
                self.begin()
                return None
            case ServerRequest.ASSETS:
                return self.assets()
            case ServerRequest.SERVER:
                return self.server()
            case ServerRequest.OTHER_SERVER:
                return self.other_server()


@dataclass(frozen=True, slots=True)
class WorkerClient:
    """Sends requests to the coordinator at `address`."""

    address: str

    @property
    def folder(self) -> Path:
        """See Coordinator."""
        return Path(self.address).parent

    def begin(self) -> None:
        """See Coordinator."""
        self._ask(ServerRequest.BEGIN)

    def assets(self) -> Found:
        """See Coordinator."""
        found: Found = self._ask(ServerRequest.ASSETS)
        return found

    def server(self) -> Access | Missing:
        """See Coordinator."""
        found: Access | Missing = self._ask(ServerRequest.SERVER)
        return found

    def other_server(self) -> Access | Missing:
        """See Coordinator."""
        found: Access | Missing = self._ask(ServerRequest.OTHER_SERVER)
        return found

    def _ask(self, request: ServerRequest) -> Any:
        with Client(self.address, family="AF_UNIX") as coordinator:
            coordinator.send(request)
            result = coordinator.recv()
        if isinstance(result, Exception):
            raise result
        return result


SharedServer: TypeAlias = Coordinator | WorkerClient
