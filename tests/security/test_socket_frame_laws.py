"""Whatever comes in on the socket of the admin API, the process goes on, in little memory, and tells no secret."""

import asyncio
import gzip
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.clients.admin_api import socket_link
from tests.security.measured_process import MeasuredProcess, examples_in

pytestmark = [
    pytest.mark.laws,
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the memory is measured as Linux shows it"),
]
SECRET: Final = "swordfish-Zq81xTf0aLw"
EXAMPLES: Final = examples_in("SETPOINT_SOCKET_FRAMES", 20_000)
MIB: Final = 2**20
LINES: Final = (
    "GET /v1/hello HTTP/1.1",
    "POST /v1/apply HTTP/1.1",
    "POST /v1/delete HTTP/1.1",
    "POST /v1/look HTTP/1.1",
    "POST /v1/troubles HTTP/1.1",
    "GET /v1/alive HTTP/1.1",
    "GET /metrics HTTP/1.1",
    "GET /healthz HTTP/1.0",
    "PUT /v1/apply HTTP/1.1",
    "POST /v1/nothing HTTP/1.1",
    "POST /../../etc/passwd HTTP/1.1",
    "GET http://elsewhere/v1/hello HTTP/1.1",
    "CONNECT elsewhere:443 HTTP/1.1",
    "POST /v1/apply HTTP/9.9",
    "POST /v1/" + "x" * 10_000 + " HTTP/1.1",
    "\x16\x03\x01\x02",
    "",
)
HEADERS: Final = (
    "Content-Type: application/json",
    "Content-Encoding: gzip",
    "Expect: 100-continue",
    "Expect: something",
    "Connection: close",
    "Upgrade: websocket\r\nConnection: upgrade",
    "Authorization: Bearer " + SECRET,
    "Cookie: a=" + SECRET,
    "X-Long: " + "x" * 5_000,
    "X-Null: a\x00b",
    "No colon here",
    "Content-Length: -1",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
)


def _gadget(name: str, spec: str = "{}", **more: str) -> bytes:
    members = "".join(f',"{key}":{value}' for key, value in more.items())
    head = f'"apiVersion":"test.setpoint.dev/v1","kind":"Gadget","metadata":{{"name":"{name}"}}'
    return f'{{{head},"spec":{spec}{members}}}'.encode()


_SECRET_MANIFEST: Final = (
    b'{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"key":"%b"}}' % SECRET.encode()
)
BODIES: Final = {
    "empty": b"",
    "nothing": b"{}",
    "null": b"null",
    "one": b'{"manifests":[%b]}' % _gadget("a", '{"size":1}'),
    "secret": b'{"manifests":[%b]}' % _SECRET_MANIFEST,
    "secret twice": b'{"manifests":[%b,%b]}' % (_SECRET_MANIFEST, _SECRET_MANIFEST),
    "secret as a number": b'{"manifests":[%b]}' % _SECRET_MANIFEST.replace(b'{"key":', b'{"key":5,"other":'),
    "names": b'{"names":[{"group":"test.setpoint.dev","kind":"Gadget","namespace":"default","name":"a"}]}',
    "odd names": b'{"names":[{"group":"","kind":"","namespace":"../..","name":"\\u0000"},5]}',
    "many names": b'{"names":[' + b'{"group":"g","kind":"K","namespace":"n","name":"a"},' * 3_000 + b"{}]}",
    "no manifest": b'{"manifests":[1,null,[],"x"]}',
    "bad name": b'{"manifests":[%b]}' % _gadget("../" + "x" * 300),
    "large number": b'{"manifests":[%b]}' % _gadget("c", f'{{"size":{10**4000}}}'),
    "not UTF-8": b'{"manifests":[{"a":"\xff"}]}',
    "half a character": b'{"manifests":[{"a":"\\ud800"}]}',
    "deep": b'{"manifests":[' + b"[" * 100_000,
    "deep manifest": b'{"manifests":[%b]}' % _gadget("d", '{"a":' * 300 + "1" + "}" * 300),
    "254 levels": b'{"manifests":[%b]}' % _gadget("d", '{"a":' * 250 + "1" + "}" * 250),
    "many": b'{"manifests":[' + b"{}," * 50_000 + b"{}]}",
    "more": b'{"manifests":[' + b"[]," * 2 * MIB + b"0]}",
    "wide": b'{"manifests":[%b]}' % _gadget("e", '{"a":[' + "0," * 250_000 + "0]}"),
    "text": b'{"manifests":["' + b"x" * (15 * MIB) + b'"]}',
    "too large": b"x" * (40 * MIB),
    "bomb": gzip.compress(b" " * (64 * MIB)),
    "zeros": b"\x00" * 1_000,
    "lines": b"\r\n" * 10_000,
    "requests": b"GET /v1/hello HTTP/1.1\r\nHost: a\r\n\r\n" * 500,
}
_LARGE: Final = frozenset(name for name, body in BODIES.items() if len(body) > MIB // 4)
FRAMINGS: Final = ("length", "length", "chunked", "short", "long", "none", "broken chunks", "slow")


@dataclass(frozen=True, slots=True)
class Frame:
    """What a client sends on one connection. With `cut` it breaks off."""

    line: str
    headers: tuple[str, ...]
    body: str
    framing: str
    cut: int | None = None

    def sent(self) -> bytes:
        """All of it."""
        body = BODIES[self.body]
        head = "\r\n".join((self.line, "Host: setpoint", *self.headers, *self._framing(len(body)))) + "\r\n\r\n"
        whole = head.encode("latin-1") + self._framed(body)
        return whole if self.cut is None else whole[: self.cut % (len(whole) + 1)]

    def _framing(self, length: int) -> tuple[str, ...]:
        sizes = {"length": length, "slow": length, "short": length // 2, "long": length + 50}
        if self.framing in sizes:
            return (f"Content-Length: {sizes[self.framing]}",)
        return () if self.framing == "none" else ("Transfer-Encoding: chunked",)

    def _framed(self, body: bytes) -> bytes:
        match self.framing:
            case "chunked":
                return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
            case "broken chunks":
                return b"zz\r\n" + body
            case _:
                return body


def frames() -> st.SearchStrategy[Frame]:
    """Any frame. Large ones are rarer: each takes as long as a hundred others."""
    small = st.sampled_from([name for name in BODIES if name not in _LARGE])
    is_large = st.sampled_from([False] * 40 + [True])
    return st.builds(
        Frame,
        line=st.one_of(st.just(LINES[1]), st.sampled_from(LINES)),
        headers=st.lists(st.sampled_from(HEADERS), max_size=3).map(tuple),
        body=is_large.flatmap(lambda large: st.sampled_from(sorted(_LARGE)) if large else small),
        framing=st.sampled_from(FRAMINGS),
        cut=st.one_of(st.none(), st.none(), st.none(), st.integers(0, 10**8)),
    )


class AdminSocket:
    """The socket of a process, and the process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.db"
        self.runner = asyncio.Runner()
        self.process = MeasuredProcess("tests.security.admin_server", [str(self.path)])
        self.runner.run(self._start())

    async def _start(self) -> None:
        await self.process.start()
        for body in ("one", "secret", "names", "many"):
            await self._send(Frame(LINES[1], (), body, "length"))
        await self.process.tell("")
        self.process.begin()

    def responses(self, frame: Frame) -> bytes:
        """What comes back; then the process still answers."""
        self.process.output.clear()
        self.process.begin_example()
        found = self.runner.run(self._send(frame))
        state = self.runner.run(self.process.tell(""))
        self.process.end_example()
        assert state.startswith("running "), state
        return found

    async def _send(self, frame: Frame) -> bytes:
        reader, writer = await asyncio.open_unix_connection(str(socket_link(self.path)))
        received = asyncio.create_task(_read(reader))
        try:
            writer.write(frame.sent())
            # The process may read no more of it: then the connection is closed.
            async with asyncio.timeout(1):
                await writer.drain()
            # The other end sees that no more comes: a request that is not complete is given up.
            writer.write_eof()
            await asyncio.wait([received], timeout=0.02)
        except (ConnectionError, TimeoutError):
            pass
        finally:
            writer.transport.abort()
        return await received

    def close(self) -> None:
        self.runner.run(self.process.stop())
        self.runner.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    found = bytearray()
    try:
        while piece := await reader.read(65536):
            found += piece[: MIB - len(found)]
    except ConnectionError:
        pass
    return bytes(found)


@pytest.fixture(scope="module")
def admin_socket(request: pytest.FixtureRequest) -> Iterator[AdminSocket]:
    with tempfile.TemporaryDirectory() as folder:
        made = AdminSocket(Path(folder))
        yield made
        made.close()
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"\n{made.process.figures()}")


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(frame=frames())
def test_any_frame_leaves_the_process_well(frame: Frame, admin_socket: AdminSocket) -> None:
    responses = admin_socket.responses(frame)

    # To what is not HTTP the library answers with what it was sent.
    assert SECRET.encode() not in responses or b" 400 Bad Request" in responses
    assert not any(SECRET in line for line in admin_socket.process.output)
    assert not any('"level":"error"' in line for line in admin_socket.process.output), admin_socket.process.output
