"""The HTTP server of a process, on the loopback device."""

import asyncio
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession, UnixConnector, web

from setpoint.errors import UserError
from setpoint.runtime.limited_server import ListenAddress, parse_listen_address
from setpoint.runtime.manager import Phase
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.server import HttpServer


@dataclass
class Process:
    """The health of a process, as set by the test."""

    phase: Phase = Phase.RUNNING
    is_ready: bool = True
    failed_tasks: tuple[str, ...] = ()
    unserved_kinds: tuple[str, ...] = ()
    outdated_kinds: tuple[str, ...] = ()


@asynccontextmanager
async def serving(
    process: Process | None = None, *routes: web.RouteDef, host: str = "127.0.0.1"
) -> AsyncIterator[HttpServer]:
    server = HttpServer(process or Process(), Telemetry(), routes)
    await server.start(host, 0)
    try:
        yield server
    finally:
        await server.close()


def _ask(path: str, process: Process | None = None, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    """Status, content type and text of the answer."""

    async def main() -> tuple[int, str, str]:
        async with serving(process) as server, ClientSession(server.address) as client:
            answer = await client.request(method, path, headers=headers)
            return answer.status, answer.headers.get("Content-Type", ""), await answer.text()

    return asyncio.run(main())


# --- Health -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", list(Phase))
def test_a_process_without_failed_tasks_is_healthy(phase: Phase) -> None:
    assert _ask("/healthz", Process(phase, is_ready=False)) == (200, "text/plain; charset=utf-8", "ok\n")


def test_healthz_names_failed_tasks() -> None:
    status, _, text = _ask("/healthz", Process(failed_tasks=("informer", "StorageBucket")))

    assert (status, text) == (503, "not running any more: informer, StorageBucket\n")


def test_a_process_is_ready_when_its_manager_is() -> None:
    assert _ask("/readyz")[::2] == (200, "ok\n")


def test_readyz_names_the_kinds_that_the_store_does_not_serve() -> None:
    status, _, text = _ask("/readyz", Process(unserved_kinds=("SQLUser", "TrusteeConfig")))

    assert (status, text) == (200, "ok, but for want of a CRD not for SQLUser, TrusteeConfig\n")


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.DRAINING, Phase.ENDED])
def test_readyz_names_the_phase_of_a_process_that_is_not_ready(phase: Phase) -> None:
    assert _ask("/readyz", Process(phase, is_ready=False))[::2] == (503, f"{phase.value}\n")


# --- Metrics ----------------------------------------------------------------------------------------------------------


def test_metrics_are_plain_text_by_default() -> None:
    status, content_type, text = _ask("/metrics")

    assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "# TYPE setpoint_resources gauge\n" in text
    assert not text.endswith("# EOF\n")


def test_metrics_are_openmetrics_for_prometheus() -> None:
    accept = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

    status, content_type, text = _ask("/metrics", Accept=accept)

    assert (status, content_type.partition(" charset")[0]) == (200, "application/openmetrics-text; version=1.0.0;")
    assert text.endswith("# EOF\n")
    assert text.count("# EOF\n") == 1


# --- HTTP -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_every_page_answers_head(path: str) -> None:
    assert _ask(path, method="HEAD")[::2] == (200, "")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("POST", "/metrics", 405)])
def test_unknown_paths_and_methods_get_their_status_code(method: str, path: str, status: int) -> None:
    assert _ask(path, method=method)[0] == status


def test_a_caller_may_add_routes() -> None:
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def main() -> str:
        route = web.post("/hello", hello)
        async with serving(None, route) as server, ClientSession(server.address) as client:
            return await (await client.post("/hello")).text()

    assert asyncio.run(main()) == "hello"


# --- Addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", ListenAddress("", 8080)),
        (":0", ListenAddress("", 0)),
        ("127.0.0.1:9090", ListenAddress("127.0.0.1", 9090)),
        ("localhost:65535", ListenAddress("localhost", 65535)),
        ("[::1]:8080", ListenAddress("::1", 8080)),
    ],
)
def test_an_address_is_a_host_if_any_and_a_port(text: str, address: ListenAddress) -> None:
    assert parse_listen_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "8080", "localhost", ":", ":http", ":65536", ":-1", ":٣", "::1:8080", "[::1:80"])
def test_an_invalid_address_is_rejected_with_a_hint(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_listen_address(text)

    assert str(refused.value) == (
        f"{text!r} is no address to listen on: write :8080 for every address, or 127.0.0.1:8080, or [::1]:8080; "
        "port 0 takes any that is free"
    )


def test_without_a_host_it_listens_on_every_address() -> None:
    async def main() -> tuple[int, int]:
        async with serving(host="") as server, ClientSession() as client:
            port = int(server.address.rpartition(":")[2])
            return port, (await client.get(f"http://127.0.0.1:{port}/healthz")).status

    port, status = asyncio.run(main())

    assert port > 0
    assert status == 200


def test_a_port_in_use_is_named() -> None:
    async def main() -> None:
        async with serving() as server:
            port = int(server.address.rpartition(":")[2])
            with pytest.raises(UserError) as refused:
                await HttpServer(Process(), Telemetry()).start("127.0.0.1", port)

            assert str(refused.value) == (
                f"cannot listen on 127.0.0.1:{port}: another process does; choose another port, or 0"
            )

    asyncio.run(main())


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        asyncio.run(HttpServer(Process(), Telemetry()).start("192.0.2.1", 8080))

    assert str(refused.value) == (
        "cannot listen on 192.0.2.1:8080: Cannot assign requested address; write :8080 for every address, or "
        "127.0.0.1:8080, or [::1]:8080; port 0 takes any that is free"
    )


def test_a_closed_server_has_no_address_and_its_port_is_free_again() -> None:
    async def main() -> None:
        server = HttpServer(Process(), Telemetry())
        await server.start("127.0.0.1", 0)
        port = int(server.address.rpartition(":")[2])
        await server.close()
        await server.close()

        assert server.address == ""
        await server.start("127.0.0.1", port)
        await server.close()

    asyncio.run(main())


# --- Sockets in the file system ---------------------------------------------------------------------------------------


async def _ask_at(path: Path) -> int:
    async with ClientSession(connector=UnixConnector(str(path))) as client:
        return (await client.get("http://localhost/healthz")).status


def test_a_unix_socket_is_private_and_removed_on_close(tmp_path: Path) -> None:
    path = tmp_path / "control"

    async def main() -> tuple[int, int, str]:
        server = HttpServer(Process(), Telemetry())
        await server.start_unix(path)
        mode, status, address = stat.S_IMODE(path.stat().st_mode), await _ask_at(path), server.address
        await server.close()
        return mode, status, address

    assert asyncio.run(main()) == (0o600, 200, str(path))
    assert not path.exists()


def test_a_stale_unix_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))

    async def main() -> int:
        server = HttpServer(Process(), Telemetry())
        await server.start_unix(path)
        status = await _ask_at(path)
        await server.close()
        return status

    assert asyncio.run(main()) == 200


def test_a_unix_socket_in_use_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control"

    async def main() -> int:
        first = HttpServer(Process(), Telemetry())
        await first.start_unix(path)
        with pytest.raises(UserError, match=r"Address already in use; choose another path"):
            await HttpServer(Process(), Telemetry()).start_unix(path)
        status = await _ask_at(path)
        await first.close()
        return status

    assert asyncio.run(main()) == 200


def test_a_file_that_is_no_socket_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control"
    path.write_text("mine", encoding="utf-8")

    with pytest.raises(UserError, match=r"control: Address already in use"):
        asyncio.run(HttpServer(Process(), Telemetry()).start_unix(path))

    assert path.read_text(encoding="utf-8") == "mine"
