"""While the process is guarded, nothing bypasses our client, whichever library, task or thread tries."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from setpoint.clients.google.tokens import AccessToken, TokenCredentials
from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.clients.kubernetes.exec_plugin import ExecEnvironment, LoginResult, run_exec_plugin
from setpoint.clients.ratelimit.fair_queue import on_behalf_of
from setpoint.clients.write_guard import BlockedWrites, exempt_from_guard, process_guarded_by
from setpoint.errors import WriteBlocked
from tests.clients.exec_plugins import printing
from tests.clients.loopback_servers import http_server
from tests.clients.manual_time import ManualClock

Bypass = Callable[[int], object]


def _with_a_socket(port: int) -> None:
    with closing(socket.socket()) as opened:
        opened.connect(("127.0.0.1", port))


def _with_the_standard_library(port: int) -> None:
    urllib.request.urlopen(f"http://127.0.0.1:{port}/", data=b"write").close()


def _with_another_client(port: int) -> None:
    async def post() -> None:
        async with aiohttp.ClientSession() as session, session.post(f"http://127.0.0.1:{port}/"):
            pass

    asyncio.run(post())


def _with_a_datagram(port: int) -> None:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as opened:
        opened.sendto(b"write", ("127.0.0.1", port))


def _with_a_message(port: int) -> None:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as opened:
        opened.sendmsg([b"write"], [], 0, ("127.0.0.1", port))


def _with_a_program(_port: int) -> None:
    subprocess.run([sys.executable, "-c", "password"], check=False)


def _with_a_shell(_port: int) -> None:
    os.system("true password")


def _with_a_copy(_port: int) -> None:
    os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-c", "password"], {}), 0)


BYPASSES: dict[str, Bypass] = {
    "connect 127.0.0.1:{port}": _with_a_socket,
    "connect 127.0.0.1:{port} ": _with_the_standard_library,
    "connect 127.0.0.1:{port}  ": _with_another_client,
    "send 127.0.0.1:{port}": _with_a_datagram,
    "send 127.0.0.1:{port} ": _with_a_message,
    f"start {sys.executable}": _with_a_program,
    "start true": _with_a_shell,
    f"start {sys.executable} ": _with_a_copy,
}


class Sink(BaseHTTPRequestHandler):
    """Accepts every request."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""


@pytest.fixture(scope="module")
def port() -> Any:
    """The port of a server that listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Sink) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def _in_a_thread(way: Bypass, port: int) -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(way, port).result()


def _in_a_task(way: Bypass, port: int) -> None:
    async def start() -> None:
        await asyncio.create_task(asyncio.to_thread(way, port))

    asyncio.run(start())


@pytest.mark.parametrize(
    "where", [lambda way, port: way(port), _in_a_thread, _in_a_task], ids=["here", "thread", "task"]
)
@pytest.mark.parametrize("bypass", BYPASSES)
def test_a_bypass_is_blocked_and_recorded(bypass: str, where: Callable[[Bypass, int], None], port: int) -> None:
    blocked_writes, expected = BlockedWrites(), f"{bypass.strip().format(port=port)} (past our client)"

    with process_guarded_by(blocked_writes), pytest.raises(WriteBlocked) as raised:
        where(BYPASSES[bypass], port)

    assert [str(one) for one in blocked_writes.writes] == [expected]
    assert str(raised.value) == f"{expected}: nothing may be written here; a preview only reads"
    assert "password" not in f"{raised.value} {blocked_writes.writes}"


@pytest.mark.parametrize("bypass", BYPASSES)
def test_outside_of_the_guard_nothing_is_blocked(bypass: str, port: int) -> None:
    with process_guarded_by(BlockedWrites()):
        pass

    BYPASSES[bypass](port)


def test_a_blocked_bypass_names_its_caller(port: int) -> None:
    blocked_writes = BlockedWrites()

    with (
        process_guarded_by(blocked_writes),
        on_behalf_of("StorageBucket default/logs", failed=False),
        pytest.raises(WriteBlocked),
    ):
        _with_a_socket(port)

    assert [one.caller for one in blocked_writes.writes] == ["StorageBucket default/logs"]


def test_an_earlier_thread_and_an_exempt_login_are_not_blocked(port: int) -> None:
    blocked_writes = BlockedWrites()
    with ThreadPoolExecutor(1) as threads:
        before = threads.submit(threading.current_thread).result()
        with process_guarded_by(blocked_writes):
            threads.submit(_with_a_socket, port).result()
            assert threads.submit(threading.current_thread).result() is before
            with exempt_from_guard():
                _in_a_task(_with_a_socket, port)

    assert blocked_writes.writes == []


def test_a_task_that_outlives_the_guard_is_not_blocked(port: int) -> None:
    async def main() -> None:
        may_connect = asyncio.Event()

        async def later() -> None:
            await may_connect.wait()
            _with_a_socket(port)

        with process_guarded_by(BlockedWrites()):
            task = asyncio.create_task(later())
            await asyncio.sleep(0)
        may_connect.set()
        await task

    asyncio.run(main())


def test_our_own_client_is_not_blocked() -> None:
    async def handler(_request: web.BaseRequest) -> web.Response:
        return web.Response(text="ok")

    async def main() -> bytes:
        client = HttpClient()
        async with http_server(handler) as url:
            with process_guarded_by(BlockedWrites()):
                answer = await client.send(HttpRequest("GET", f"{url}/b"))
            await client.close()
        return answer.body

    assert asyncio.run(main()) == b"ok"


def test_a_preview_may_log_in(port: int, tmp_path: Path) -> None:
    class Source:
        """Connects to a server without our client."""

        def fetch(self) -> AccessToken:
            _with_the_standard_library(port)
            return AccessToken({"authorization": "Bearer t"}, 60.0)

    async def main() -> tuple[Mapping[str, str], LoginResult]:
        with process_guarded_by(blocked_writes):
            headers = await TokenCredentials(Source, ManualClock()).headers()
            login = printing(tmp_path, '{"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "t"}}')
            return headers, await run_exec_plugin(login, ExecEnvironment(has_terminal=False))

    blocked_writes = BlockedWrites()
    assert asyncio.run(main()) == ({"authorization": "Bearer t"}, LoginResult("Bearer t"))
    assert blocked_writes.writes == []
