"""One API server for a test run, shared by all xdist workers.

The process that starts the workers is the coordinator: it finds the programs and starts the server once, on the first
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
from typing import Any, TypeAlias

from tests.cluster.access import Access
from tests.cluster.assets import Assets, Found, Missing, find
from tests.cluster.progress import Progress
from tests.cluster.server import CONTROLLERS, Cluster, Settings


class ServerRequest(Enum):
    """A request of a worker."""

    BEGIN = "find or build the programs"
    ASSETS = "return the programs"
    SERVER = "return the shared server"


class Coordinator:
    """Finds the programs and starts the shared server, each once, even when that fails."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._progress = Progress(tell)
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(thread_name_prefix="coordinator")
        self._folder = Path(tempfile.mkdtemp(prefix="setpoint-tests-"))
        self._assets: Future[Found] | None = None
        self._cluster: Future[Cluster | Missing] | None = None
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
        with self._lock:
            if self._cluster is None:
                self._cluster = self._threads.submit(self._serve)
        found = self._cluster.result()
        return found if isinstance(found, Missing) else found.access

    def listen(self) -> str:
        """The address at which requests of workers are served."""
        address = self._folder / "coordinator.sock"
        if self._listener is None:
            self._listener = Listener(str(address), family="AF_UNIX")
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return str(address)

    def cancel(self) -> None:
        """Cancels a build; its waiters get an error."""
        self._progress.cancel()

    def close(self) -> None:
        """Stops the server and a running build."""
        self.cancel()
        # A failed start was raised where the server was requested.
        if self._cluster is not None and self._cluster.exception() is None:
            found = self._cluster.result()
            if isinstance(found, Cluster):
                found.close()
        self._threads.shutdown()
        if self._listener is not None:
            self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> Cluster | Missing:
        match self.assets():
            case Missing() as missing:
                return missing
            case Assets() as assets:
                cluster = Cluster(assets, self._folder, Settings(controllers=CONTROLLERS))
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


@dataclass(frozen=True, slots=True)
class WorkerClient:
    """Sends requests to the coordinator at `address`."""

    address: str

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

    def _ask(self, request: ServerRequest) -> Any:
        with Client(self.address, family="AF_UNIX") as coordinator:
            coordinator.send(request)
            result = coordinator.recv()
        if isinstance(result, Exception):
            raise result
        return result


SharedServer: TypeAlias = Coordinator | WorkerClient
