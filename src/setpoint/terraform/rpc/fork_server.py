"""A fork server: a process that has imported the provider, and forks a process for each further start of it.

Terraform starts a provider three times for a plan and once more to apply it. Imports are most of the CPU time of such a
process. So the first one leaves a fork server behind, which serves for the later ones of the same Terraform: they pass
on their environment, directory and standard streams, and wait. A fork has nothing of an earlier one but the imported
modules. The fork server ends with its Terraform, and when it was not asked for a while.
"""

import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.terraform.rpc.fork_client import (
    LENGTH_BYTES,
    PASSED_DESCRIPTORS,
    PROGRAM,
    is_same_user,
    server_address,
)

_IDLE_S: Final = 30.0
_REQUEST_S: Final = 5.0
_MAX_REQUEST_BYTES: Final = 16 << 20


def leave_fork_server(serve: Callable[[], object], prepare: Callable[[], object], idle_s: float = _IDLE_S) -> None:
    """Leaves a fork server for the Terraform that started this process. Each of its forks calls `serve`.

    It calls `prepare` before the first fork, to import what the first process had no use for.

    Called while there is one thread and no event loop. Without a fork server, every process serves by itself.
    """
    terraform = os.getppid()
    address = server_address(terraform)
    if address is None:
        return
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            watched = os.pidfd_open(terraform)
        except OSError:
            return
        try:
            # Fails when another first process was faster.
            listener.bind(address)
            listener.listen()
            sys.stderr.flush()
            # What was imported is never garbage: a collection would copy all of its pages.
            gc.freeze()
            if os.fork() == 0:
                _end_with(_ForkServer(listener, watched, serve, prepare, idle_s).run)
        except OSError:
            return
        finally:
            os.close(watched)


def _end_with(function: Callable[[], object]) -> NoReturn:
    """Ends this process, a fork, with `function`."""
    code = 1
    try:
        function()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException as error:  # noqa: BLE001 - nothing above may run in a fork
        # The class alone: a message may hold a secret.
        sys.stderr.write(f"The provider failed: {type(error).__name__}\n")
        sys.stderr.flush()
    finally:
        os._exit(code)


@dataclass(frozen=True, slots=True)
class _Session:
    """A fork that serves Terraform, and the connection of the process in whose place it does."""

    process: int
    # Becomes readable when the fork ends.
    watched: int
    connection: socket.socket

    @property
    def descriptors(self) -> tuple[int, int]:
        return self.watched, self.connection.fileno()

    def end(self) -> None:
        """Waits for the fork, and passes its exit code on."""
        _, status = os.waitpid(self.process, 0)
        code = os.waitstatus_to_exitcode(status)
        with suppress(OSError):
            self.connection.sendall(bytes((code if code >= 0 else 128 - code,)))
        self.connection.close()
        os.close(self.watched)


class _ForkServer:
    """`terraform` is a descriptor that becomes readable when Terraform ends."""

    def __init__(
        self,
        listener: socket.socket,
        terraform: int,
        serve: Callable[[], object],
        prepare: Callable[[], object],
        idle_s: float,
    ) -> None:
        self._listener = listener
        self._terraform = terraform
        self._serve = serve
        self._prepare = prepare
        self._is_prepared = False
        self._idle_s = idle_s
        self._poll = select.poll()
        # By each of their descriptors.
        self._sessions: dict[int, _Session] = {}

    def run(self) -> None:
        """Serves until Terraform has ended or nothing was asked for a while, and no session is left."""
        # Ctrl-C is for the sessions.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Terraform waits until the standard streams of its providers are closed.
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, *PASSED_DESCRIPTORS):
            os.dup2(null, descriptor)
        self._poll.register(self._listener, select.POLLIN)
        self._poll.register(self._terraform, select.POLLIN)
        while self._serve_next():
            pass
        self._poll.unregister(self._listener)
        self._poll.unregister(self._terraform)
        self._listener.close()
        while self._sessions:
            self._watch_sessions(self._ready(None))

    def _serve_next(self) -> bool:
        """Serves what is asked next; whether there may be more."""
        ready = self._ready(None if self._sessions else self._idle_s)
        if not ready or self._terraform in ready:
            return False
        self._watch_sessions(ready)
        if self._listener.fileno() in ready:
            self._accept()
        return True

    def _ready(self, seconds: float | None) -> set[int]:
        return {descriptor for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000)}

    def _watch_sessions(self, ready: set[int]) -> None:
        for descriptor in ready & self._sessions.keys():
            session = self._sessions.get(descriptor)
            if session is None:
                continue
            if descriptor != session.watched:
                # The process that it serves for was killed.
                os.kill(session.process, signal.SIGKILL)
            for one in session.descriptors:
                self._poll.unregister(one)
                del self._sessions[one]
            session.end()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        received = _receive(connection)
        if received is None:
            connection.close()
            return
        request, streams = received
        if not self._is_prepared:
            self._is_prepared = True
            self._prepare()
        process = os.fork()
        if process == 0:
            # The descriptors of the fork server, which has them open still.
            for one in (self._listener, connection, *(session.connection for session in self._sessions.values())):
                one.close()
            _end_with(lambda: self._serve_for(request, streams))
        for descriptor in streams:
            os.close(descriptor)
        session = _Session(process, os.pidfd_open(process), connection)
        for descriptor in session.descriptors:
            self._sessions[descriptor] = session
            self._poll.register(descriptor, select.POLLIN)
        with suppress(OSError):
            connection.sendall(process.to_bytes(LENGTH_BYTES, "big"))

    def _serve_for(self, request: list[bytes], streams: list[int]) -> None:
        for received, descriptor in zip(streams, PASSED_DESCRIPTORS, strict=True):
            os.dup2(received, descriptor)
            os.close(received)
        directory, *variables = request
        os.environb.clear()
        for variable in variables:
            name, _, value = variable.partition(b"=")
            os.environb[name] = value
        os.chdir(directory)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._serve()


def _receive(connection: socket.socket) -> tuple[list[bytes], list[int]] | None:
    """Directory and variables, and the standard streams, of the process that asks; None when it may not."""
    streams: list[int] = []
    try:
        connection.settimeout(_REQUEST_S)
        if is_same_user(connection):
            length, streams, _, _ = socket.recv_fds(connection, LENGTH_BYTES, len(PASSED_DESCRIPTORS))
            program, *request = _received(connection, int.from_bytes(length, "big")).split(b"\0")
            if program == PROGRAM and len(streams) == len(PASSED_DESCRIPTORS):
                return request, streams
    except OSError:
        pass
    for descriptor in streams:
        os.close(descriptor)
    return None


def _received(connection: socket.socket, length: int) -> bytes:
    """So many bytes; none when there are fewer, or more than a request has."""
    received = bytearray()
    while len(received) < length <= _MAX_REQUEST_BYTES:
        part = connection.recv(length - len(received))
        if not part:
            return b""
        received += part
    return bytes(received)
