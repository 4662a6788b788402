"""A proxy before the API server that counts requests. It sends them as the administrator's."""

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Final
from urllib.parse import parse_qs, urlsplit

from tests.cluster.access import Access

READ, DRY_RUN, APPLY, DELETE, DISCOVERY = "GET", "PATCH dry run", "PATCH", "DELETE", "discovery"
_NOT_PASSED_ON: Final = ("transfer-encoding", "connection", "content-length")


class CountingProxy:
    """The requests since the last `taken`, in their order. One for no object of the namespace is a discovery."""

    def __init__(self, url: str, namespace: str) -> None:
        self.url = url
        self._namespace = namespace
        self._sent: list[str] = []
        self._lock = Lock()
        # Called once, between the first such request and its response.
        self.interventions: dict[str, Callable[[], None]] = {}

    def add(self, method: str, target: str) -> str:
        """A request is sent: which one it is."""
        url = urlsplit(target)
        is_dry = "dryRun" in parse_qs(url.query)
        is_object = f"/namespaces/{self._namespace}/" in url.path
        with self._lock:
            self._sent.append(f"{method}{' dry run' if is_dry else ''}" if is_object else DISCOVERY)
            return self._sent[-1]

    def intervene(self, request: str) -> None:
        """Another writer comes between a request and its response, if one is to."""
        with self._lock:
            action = self.interventions.pop(request, None)
        if action is not None:
            action()

    def taken(self) -> list[str]:
        """The requests since the last time."""
        with self._lock:
            sent, self._sent = self._sent, []
        return sent


@contextmanager
def counting_proxy(access: Access, namespace: str) -> Iterator[CountingProxy]:
    """A proxy that runs inside the block."""
    server_name = urlsplit(access.url).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            request = proxy.add(self.command, self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPSConnection(server_name, context=access.tls())
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            found = response.read()
            connection.close()
            proxy.intervene(request)
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in _NOT_PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        do_GET = do_PATCH = do_POST = do_DELETE = _pass_on

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        proxy = CountingProxy(f"http://127.0.0.1:{server.server_address[1]}", namespace)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
