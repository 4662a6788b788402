"""The processes of a cluster find each other by the name of a headless Service: a real resolver, a real DNS server."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from threading import enumerate as enumerate_threads
from typing import Any, Final

import pytest

from setpoint.dashboard.api.models import ProcessAnswer
from setpoint.dashboard.peers import Peers
from setpoint.runtime.limited_server import parse_listen_address
from tests.cluster.polling import until
from tests.cluster.ports import free_port
from tests.dashboard.name_server import NameServer, NameServerMissing

_REQUIRED: Final = ("CI", "SETPOINT_REQUIRE_DNS")
# Addresses of loopback, one for each pod; no other test listens there.
_PODS: Final = ("127.81.0.1", "127.81.0.2", "127.81.0.3")


class Pod(BaseHTTPRequestHandler):
    """Answers as a process does, with its address for its identity, and notes what it was asked."""

    asked: list[tuple[str, str, str]]

    def do_GET(self) -> None:
        address = str(self.connection.getsockname()[0])
        self.asked.append((address, self.path, self.headers["Authorization"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"identity": address, "state": None}).encode())

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Prints nothing."""


class Asking:
    """A program that asks the processes behind a name each time that it is told to."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def ask(self) -> list[str]:
        """The identities of those that answered, in order."""
        found: list[str] = self._answer()["found"]
        return found

    @property
    def threads(self) -> int:
        """How many threads of the program look names up, or did, after it has asked once more."""
        found: int = self._answer()["threads"]
        return found

    def _answer(self) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def main(name: str) -> None:
    """Asks the processes behind a name for each line that is read."""

    async def ask() -> None:
        peers = Peers((parse_listen_address(name),))
        with ThreadPoolExecutor(1) as reader:
            while await asyncio.get_running_loop().run_in_executor(reader, sys.stdin.readline):
                found = await peers.ask("/process", "a-token", ProcessAnswer)
                threads = sum(one.name.startswith("asyncio") for one in enumerate_threads())
                answer = {"found": sorted(str(one.identity) for one in found), "threads": threads}
                print(json.dumps(answer), flush=True)  # noqa: T201 - to the test
        await peers.close()

    asyncio.run(ask())


@pytest.fixture
def name_server(tmp_path: Path) -> Iterator[NameServer]:
    # Beside other runs of the tests on this machine.
    server = NameServer(tmp_path, f"127.53.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}")
    try:
        server.start()
    except NameServerMissing as missing:
        if any(os.environ.get(name, "0").lower() not in ("", "0", "false") for name in _REQUIRED):
            raise
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.mark.slow
def test_the_pods_behind_a_headless_service_are_asked_as_they_come_and_go(name_server: NameServer) -> None:
    port, asked = free_port(), list[tuple[str, str, str]]()
    handler = type("NotingPod", (Pod,), {"asked": asked})
    with ExitStack() as stack:
        for address in _PODS:
            pod = stack.enter_context(ThreadingHTTPServer((address, port), handler))
            Thread(target=pod.serve_forever, daemon=True).start()
            stack.callback(pod.shutdown)
        program = stack.enter_context(
            name_server.python("-m", __name__, f"setpoint-metrics.setpoint-system.svc:{port}")
        )
        stack.callback(program.kill)
        asking = Asking(program)
        assert asking.ask() == []
        name_server.set_addresses("setpoint-metrics", _PODS[:2])
        until(lambda: asking.ask() == [*_PODS[:2]])
        # One went, one came; one has an address, and does not answer.
        name_server.set_addresses("setpoint-metrics", (_PODS[1], _PODS[2], "127.81.0.4"))
        until(lambda: asking.ask() == [*_PODS[1:]])
        assert {(path, token) for _, path, token in asked} == {("/api/v1/process?alone=1", "Bearer a-token")}

        before = asking.threads
        name_server.freeze()
        assert asking.ask() == []
        # The lookup still waits, and is waited for again: other work has the threads of the process.
        assert [asking.threads for _ in range(2)][-1] <= before + 1


if __name__ == "__main__":
    main(sys.argv[1])
