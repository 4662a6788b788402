"""A receiver of notifications: a real HTTP server of the test, which answers as it is told."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson


@dataclass(frozen=True)
class Received:
    """A request that came in."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self.body)
        return found


@dataclass
class TestReceiver:
    """What came in; `answers` are the statuses of the next requests, with headers; 204 after them. 0 hangs."""

    __test__ = False

    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def until(self, condition: Callable[[], object]) -> None:
        """Waits for what another process does; AssertionError after a long time."""
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, self.received
            threading.Event().wait(0.005)

    def told(self) -> list[tuple[str, str, str]]:
        """Type, problem and name of each message, in the form of a webhook."""
        bodies = [one.json for one in self.received]
        return [(one["type"], one["problem"], one["resource"]["name"]) for one in bodies]


@contextmanager
def receiving(*answers: tuple[int, dict[str, str]]) -> Iterator[TestReceiver]:
    """A receiver on a port of this machine."""
    receiver = TestReceiver(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(Received(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status, headers = receiver.answers.pop(0) if receiver.answers else (204, {})
            if not status:
                receiver.released.wait()
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
