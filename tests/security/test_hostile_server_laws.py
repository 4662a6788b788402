"""Whatever a server sends, a client ends with a result or one of our errors, in little memory, and tells no secret."""

import asyncio
import os
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings

from tests.security.hostile_responses import HostileResponse, responses
from tests.security.measured_process import MeasuredProcess, examples_in

pytestmark = [
    pytest.mark.laws,
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the memory is measured as Linux shows it"),
]
TOKEN: Final = "swordfish-Zq81xTf0aLw"
EXAMPLES: Final = examples_in("SETPOINT_HOSTILE_RESPONSES", 10_000)
WARM_UP: Final = ("get", "list", "watch", "google-get", "google-list", "token", "record")


class HostileServer:
    """A server that sends `response` on each connection, and a process whose clients talk to it."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.response: HostileResponse | None = None
        self.runner.run(self._start())

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._converse, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.process = MeasuredProcess("tests.security.hostile_client", [f"http://127.0.0.1:{port}", TOKEN])
        await self.process.start()
        for verb in WARM_UP:
            self.response = HostileResponse(
                verb, "HTTP/1.1 200 OK", ("Content-Type: text/plain",), "", "HTML", "length"
            )
            await self.process.tell(verb)
        self.process.begin()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        response = self.response
        assert response is not None
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            # It repeats the credentials that it was sent.
            for part in response.parts(TOKEN if TOKEN.encode() in request else "nothing"):
                writer.write(part)
                await writer.drain()
            if response.stalls:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def outcome(self, response: HostileResponse) -> str:
        """What came of one request, as the process printed it."""
        self.response = response
        self.process.output.clear()
        self.process.begin_example()
        found = self.runner.run(self.process.tell(response.verb))
        self.process.end_example()
        return found

    def close(self) -> None:
        self.runner.run(self.process.stop())
        self._server.close()
        self.runner.close()


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[HostileServer]:
    made = HostileServer()
    yield made
    made.close()
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"\n{made.process.figures()}")


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(response=responses())
def test_any_response_is_a_result_or_one_of_our_errors(response: HostileResponse, server: HostileServer) -> None:
    outcome = server.outcome(response)

    assert outcome.startswith(("done ", "error ")), outcome
    assert TOKEN not in outcome
    assert not any(TOKEN in line for line in server.process.output)
