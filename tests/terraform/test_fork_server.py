"""Processes of a provider that are served for by forks of a process that has imported it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.terraform.rpc import fork_client, fork_server
from setpoint.terraform.rpc.fork_client import PassedTermination, is_same_user, send_request, server_address

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="fork servers are for Linux")

_PROGRAM: Final = Path(__file__).with_name("fork_server_process.py")
# Stands for Terraform: starts processes as it is told, a line of JSON each, and says what they did.
_TERRAFORM: Final = """
import json, os, subprocess, sys
started = []
for line in sys.stdin:
    name, *rest = json.loads(line)
    if name == "start":
        environment, directory = rest
        pipes = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(subprocess.Popen([sys.executable, PROGRAM], env=environment, cwd=directory, text=True, **pipes))
        answer = started[-1].pid
    elif name == "line":
        answer = started[rest[0]].stdout.readline()
    elif name == "signal":
        started[rest[0]].send_signal(rest[1])
        answer = None
    else:
        # Returns once the streams are closed.
        output, errors = started[rest[0]].communicate()
        answer = [started[rest[0]].returncode, output, errors]
    print(json.dumps(answer), flush=True)
"""


class FakeTerraform:
    """A process that starts processes of the provider, as Terraform does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"PROGRAM = {str(_PROGRAM)!r}\n{_TERRAFORM}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def start(self, folder: Path | None = None, **variables: str) -> int:
        """Starts a process; its id."""
        environment = {"PYTHONPATH": os.pathsep.join(sys.path), **variables}
        self._started += 1
        found: int = self._ask("start", environment, str(folder or self._folder))
        return found

    def line(self, number: int) -> str:
        """The next line that a process printed."""
        found: str = self._ask("line", number)
        return found

    def first_line(self, number: int) -> dict[str, Any]:
        """What a process says of itself."""
        found: dict[str, Any] = json.loads(self.line(number))
        return found

    def send_signal(self, number: int, which: signal.Signals) -> None:
        self._ask("signal", number, int(which))

    def end(self, number: int) -> tuple[int, str, str]:
        """The exit code of a process and what it printed, once its streams are closed."""
        code, output, errors = self._ask("end", number)
        return code, output, errors

    def run(self, folder: Path | None = None, **variables: str) -> tuple[int, dict[str, Any]]:
        """Starts a process and waits for it: its exit code, and what it says of itself."""
        number = self._started
        self.start(folder, **variables)
        said = self.first_line(number)
        return self.end(number)[0], said

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _ask(self, *request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@pytest.fixture
def terraform(tmp_path: Path) -> Iterator[FakeTerraform]:
    started = FakeTerraform(tmp_path)
    yield started
    started.stop()


def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("not within 20 s")


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# --- A fork serves ----------------------------------------------------------------------------------------------------


def test_the_first_process_serves_by_itself_and_later_ones_are_served_for(
    terraform: FakeTerraform, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first = terraform.run(ONLY="first")[1]
    second = terraform.run(other, ONLY="second")[1]
    third = terraform.run(ONLY="third")[1]

    assert [one["is_fork"] for one in (first, second, third)] == [False, True, True]
    assert second["process"] != third["process"]
    assert second["parent"] == third["parent"]
    assert [one["variables"]["ONLY"] for one in (first, second, third)] == ["first", "second", "third"]
    assert [one["directory"] for one in (first, second, third)] == [str(tmp_path), str(other), str(tmp_path)]


def test_what_the_first_process_did_not_import_is_imported_once(terraform: FakeTerraform) -> None:
    first, second, third = (terraform.run()[1] for _ in range(3))

    assert first["prepared"] == []
    assert second["prepared"] == third["prepared"] == [second["parent"]]


def test_the_standard_streams_are_those_of_the_process_that_terraform_started(terraform: FakeTerraform) -> None:
    terraform.run()
    terraform.start()

    # `end` returns once they are closed, too.
    code, output, errors = terraform.end(1)
    assert (code, json.loads(output)["is_fork"], errors) == (0, True, "on standard error\n")


@pytest.mark.parametrize(("behaviour", "code"), [("exit 3", 3), ("fail", 1), ("killed", 128 + signal.SIGKILL)])
def test_the_exit_code_of_a_fork_is_passed_on(terraform: FakeTerraform, behaviour: str, code: int) -> None:
    terraform.run()
    terraform.start(BEHAVIOUR=behaviour)

    found, _, errors = terraform.end(1)
    assert found == code
    assert "secret" not in errors
    # And the fork server goes on.
    terraform.start()
    assert json.loads(terraform.end(2)[1])["is_fork"]


def test_several_processes_are_served_for_at_once(terraform: FakeTerraform) -> None:
    terraform.run()
    for _ in range(4):
        terraform.start(BEHAVIOUR="until SIGTERM")
    forks = [terraform.first_line(number)["process"] for number in range(1, 5)]
    ready = [terraform.line(number) for number in range(1, 5)]
    for number in (3, 1, 4, 2):
        terraform.send_signal(number, signal.SIGTERM)

    assert len(set(forks)) == 4
    assert ready == ["ready\n"] * 4
    assert [terraform.end(number)[0] for number in range(1, 5)] == [7] * 4


# --- Signals, and the end ---------------------------------------------------------------------------------------------


def test_a_process_that_is_killed_takes_its_fork_along(terraform: FakeTerraform) -> None:
    terraform.run()
    terraform.start(BEHAVIOUR="sleep")
    fork = terraform.first_line(1)["process"]
    assert terraform.line(1) == "ready\n"
    terraform.send_signal(1, signal.SIGKILL)

    until(lambda: not is_running(fork))


def test_an_interrupt_is_for_the_fork_alone(terraform: FakeTerraform) -> None:
    terraform.run()
    process = terraform.start(BEHAVIOUR="until SIGTERM")
    fork = terraform.first_line(1)["process"]
    assert terraform.line(1) == "ready\n"
    terraform.send_signal(1, signal.SIGINT)

    assert is_running(process)
    os.kill(fork, signal.SIGINT)
    # KeyboardInterrupt, where no other handler is installed.
    assert terraform.end(1)[0] == 1


def test_the_fork_server_ends_with_terraform(terraform: FakeTerraform) -> None:
    terraform.run()
    fork_server_id = terraform.run()[1]["parent"]
    assert is_running(fork_server_id)
    terraform.stop()

    until(lambda: not is_running(fork_server_id))


def test_the_fork_server_ends_when_it_is_not_asked(terraform: FakeTerraform) -> None:
    terraform.run(IDLE_S="0.1")
    time.sleep(0.5)
    later = terraform.run(IDLE_S="30")[1]

    # So it became the next first one.
    assert not later["is_fork"]
    assert terraform.run()[1]["is_fork"]


# --- Who may ask ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"\0" * 8,
        (5).to_bytes(8, "big") + b"short"[:3],
        (20).to_bytes(8, "big") + b"another program\0/tmp",
        (1 << 60).to_bytes(8, "big"),
        b"\xff" * 64,
    ],
    ids=["nothing", "no length", "cut", "another program", "too long", "no request"],
)
def test_what_is_no_request_is_refused_and_the_next_one_is_served(
    terraform: FakeTerraform, request_bytes: bytes
) -> None:
    terraform.run()
    address = server_address(terraform.pid)
    assert address is not None
    # The address has the program in it, which is that of the tests here.
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        connection.sendall(request_bytes)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(20)
        try:
            answer = connection.recv(8)
        except ConnectionResetError:
            answer = b""

    assert answer == b""
    assert terraform.run()[1]["is_fork"]


def test_processes_of_another_user_or_container_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_same_user(ours)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not is_same_user(ours)


def test_a_server_of_another_user_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    address = b"\0setpoint-test-%d" % os.getpid()
    monkeypatch.setattr(fork_client, "server_address", lambda _process: address)
    monkeypatch.setattr(fork_client, "is_same_user", lambda _connection: False)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()

        assert fork_client.served_by_fork_server() is None
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(1) == b""


def test_a_process_of_terraform_that_is_gone_has_no_fork_server() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()

    assert server_address(ended.pid) is None


# --- What is passed on ------------------------------------------------------------------------------------------------

_NAMES: Final = st.binary(min_size=1, max_size=20).filter(lambda name: not {0, ord("=")} & set(name))
_VALUES: Final = st.binary(max_size=2000).filter(lambda value: 0 not in value)


@given(st.dictionaries(_NAMES, _VALUES, max_size=20))
def test_every_environment_is_passed_on_as_it_is(variables: dict[bytes, bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environb", variables)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            send_request(ours)
            received = fork_server._receive(theirs)

    assert received is not None
    (directory, *passed), streams = received
    for descriptor in streams:
        os.close(descriptor)
    assert directory == os.fsencode(os.getcwd())
    assert dict(one.split(b"=", 1) for one in passed) == variables


def test_a_sigterm_that_comes_before_the_session_is_known_is_passed_on() -> None:
    before = signal.getsignal(signal.SIGTERM)
    termination = PassedTermination()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        with subprocess.Popen(["sleep", "600"]) as session:
            termination.pass_to(session.pid)
            assert session.wait() == -signal.SIGTERM
    finally:
        termination.end()
        signal.signal(signal.SIGTERM, before)
