"""One API server for a run of the tests, in however many processes it is run.

The process that hands out the tests is the host: it finds the programs and starts the server, once, when first asked.
The processes that run them are its guests, and ask over a socket.
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


class Question(Enum):
    """What a guest may ask its host."""

    BEGIN = "begin to look for the programs, I shall need them"
    ASSETS = "where are the programs?"
    SERVER = "where is the server?"


class Host:
    """Has what all tests share. Whatever cannot be had is tried once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._progress = Progress(tell)
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(thread_name_prefix="host")
        self._folder = Path(tempfile.mkdtemp(prefix="setpoint-tests-"))
        self._finding: Future[Found] | None = None
        self._serving: Future[Cluster | Missing] | None = None
        self._listener: Listener | None = None

    def begin(self) -> None:
        """Looks for the programs, and builds them if need be, while other tests run."""
        with self._lock:
            if self._finding is None:
                self._finding = self._threads.submit(find, os.environ, self._progress)

    def assets(self) -> Found:
        """The programs, as soon as they are there."""
        self.begin()
        assert self._finding is not None
        return self._finding.result()

    def server(self) -> Access | Missing:
        """The shared server, as soon as it is ready."""
        with self._lock:
            if self._serving is None:
                self._serving = self._threads.submit(self._serve)
        found = self._serving.result()
        return found if isinstance(found, Missing) else found.access

    def invite(self) -> str:
        """The address at which guests are answered."""
        address = self._folder / "host.sock"
        if self._listener is None:
            self._listener = Listener(str(address), family="AF_UNIX")
            threading.Thread(target=self._welcome, args=(self._listener,), daemon=True).start()
        return str(address)

    def call_off(self) -> None:
        """Ends a build, and tells so those who wait for it."""
        self._progress.call_off()

    def close(self) -> None:
        """Ends what was started, a build as well."""
        self.call_off()
        # Who asked for a server that did not come was told why.
        if self._serving is not None and self._serving.exception() is None:
            found = self._serving.result()
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

    def _welcome(self, listener: Listener) -> None:
        while True:
            try:
                guest = listener.accept()
            except OSError:
                # The host has closed.
                return
            threading.Thread(target=self._answer, args=(guest,), daemon=True).start()

    def _answer(self, guest: "Connection[Any, Any]") -> None:
        # A guest that did not wait for the answer is one whose tests were stopped.
        with guest, suppress(EOFError, BrokenPipeError, ConnectionResetError):
            question = guest.recv()
            try:
                answer = self._find_answer(question)
            except Exception as error:  # noqa: BLE001 - it is raised again, where it was asked for
                answer = error
            guest.send(answer)

    def _find_answer(self, question: Question) -> object:
        match question:
            case Question.BEGIN:
                self.begin()
                return None
            case Question.ASSETS:
                return self.assets()
            case Question.SERVER:
                return self.server()


@dataclass(frozen=True, slots=True)
class Guest:
    """Asks the host at `address`."""

    address: str

    def begin(self) -> None:
        """As the host does."""
        self._ask(Question.BEGIN)

    def assets(self) -> Found:
        """As the host does."""
        found: Found = self._ask(Question.ASSETS)
        return found

    def server(self) -> Access | Missing:
        """As the host does."""
        found: Access | Missing = self._ask(Question.SERVER)
        return found

    def _ask(self, question: Question) -> Any:
        with Client(self.address, family="AF_UNIX") as host:
            host.send(question)
            answer = host.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


Sharing: TypeAlias = Host | Guest
