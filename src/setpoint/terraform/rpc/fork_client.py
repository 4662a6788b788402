"""Asks the fork server of the Terraform that started this process to serve in its place: see `fork_server`.

Most processes of the provider import no more than this, so nothing that takes long to load is imported: no `typing`,
and of `socket` and `signal` the parts in C. The rest of these two takes as long as the interpreter takes to start.
"""

import _signal  # type: ignore[import-not-found] # typeshed has `signal` alone
import _socket
import os
import sys
from binascii import crc32

from setpoint import __version__

# Terraform sets it for its plugins.
COOKIE_NAME = "TF_PLUGIN_MAGIC_COOKIE"
# Set to `off`, each process of the provider serves by itself.
VARIABLE = "SETPOINT_FORK_SERVER"
# Which program this is: a fork server serves for processes of the same program alone.
PROGRAM = "\n".join((__version__, sys.executable, __file__)).encode()
# What a process of the provider passes on: its standard output and standard error.
PASSED_DESCRIPTORS = (1, 2)
LENGTH_BYTES = 8
_TIMEOUT_S = 5.0


def is_supported() -> bool:
    """Whether processes can be watched, and their peers be told apart, on this system: on Linux."""
    return hasattr(os, "pidfd_open") and hasattr(_socket, "SO_PEERCRED") and os.environ.get(VARIABLE) != "off"


def server_address(terraform: int) -> bytes | None:
    """The address of the fork server of a process of Terraform, in the abstract namespace; None if there is none.

    The time at which the process started tells it from an earlier one with the same id.
    """
    try:
        # `pathlib` takes long to load.
        with open(f"/proc/{terraform}/stat", "rb") as file:  # noqa: PTH123
            started = file.read().rpartition(b")")[2].split()[19]
    except (OSError, IndexError):
        return None
    return b"\0setpoint-terraform-%d-%s-%08x" % (terraform, started, crc32(PROGRAM))


def is_same_user(connection: _socket.socket) -> bool:
    """Whether the peer is a process of this user. Anyone may listen or connect at an abstract address.

    A process of another container that shares the network has no id here.
    """
    credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    process, user = (int.from_bytes(credentials[at : at + 4], sys.byteorder) for at in (0, 4))
    return process > 0 and user == os.geteuid()


def served_by_fork_server() -> int | None:
    """The exit code, once a process of the fork server has served Terraform; None when there is no fork server."""
    address = server_address(os.getppid())
    if address is None:
        return None
    connection = _socket.socket(_socket.AF_UNIX)
    try:
        return _serve_by(connection, address)
    except OSError:
        return None
    finally:
        connection.close()


def _serve_by(connection: _socket.socket, address: bytes) -> int | None:
    connection.settimeout(_TIMEOUT_S)
    connection.connect(address)
    if not is_same_user(connection):
        return None
    termination = PassedTermination()
    # Ctrl-C reaches the session as well, and Terraform, which tells it what to do. The session may serve before its
    # id comes.
    interrupt = _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    try:
        send_request(connection)
        # From here on the fork server serves, or closes the connection.
        connection.settimeout(None)
        session = int.from_bytes(connection.recv(LENGTH_BYTES), "big")
        if session:
            termination.pass_to(session)
            return _exit_code(connection)
    finally:
        termination.end()
        _signal.signal(_signal.SIGINT, interrupt)
    return None


def _exit_code(connection: _socket.socket) -> int:
    try:
        code = connection.recv(1)
    except OSError:
        return 1
    return code[0] if code else 1


class PassedTermination:
    """SIGTERM is meant for this process alone, and is passed on to its session: also one that came before."""

    def __init__(self) -> None:
        self._session = 0
        self._is_asked = False
        _signal.signal(_signal.SIGTERM, self._ask)

    def _ask(self, *_: object) -> None:
        self._is_asked = True
        self._pass_on()

    def pass_to(self, session: int) -> None:
        """The process that serves in place of this one."""
        self._session = session
        self._pass_on()

    def _pass_on(self) -> None:
        if not (self._session and self._is_asked):
            return
        try:
            os.kill(self._session, _signal.SIGTERM)
        except ProcessLookupError:
            # It has ended, and its exit code is on the way.
            return

    def end(self) -> None:
        """As before: this process serves by itself, or ends."""
        _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
        if self._is_asked and not self._session:
            os.kill(os.getpid(), _signal.SIGTERM)


def send_request(connection: _socket.socket) -> None:
    """Sends what a fork needs to serve in place of this process."""
    variables = (name + b"=" + value for name, value in os.environb.items())
    request = b"\0".join((PROGRAM, os.fsencode(os.getcwd()), *variables))
    passed = b"".join([one.to_bytes(4, sys.byteorder) for one in PASSED_DESCRIPTORS])
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, passed)
    connection.sendmsg([len(request).to_bytes(LENGTH_BYTES, "big")], [rights])
    connection.sendall(request)
