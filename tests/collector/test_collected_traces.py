"""Traces of `setpoint run` in a real OpenTelemetry Collector, and the header that its requests carry on the wire."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.workspace import Workspace, bucket, user_environment
from tests.cluster.polling import until
from tests.collector.collector import REQUIRED, RunningCollector, running_collector
from tests.go_programs import NotBuilt

_CLIENT, _INTERNAL = 3, 1
# Version 00 of the W3C; the last bit of the flags says that it is sampled.
_TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0[13]")
_HOP_BY_HOP: Final = ("connection", "content-length", "host", "transfer-encoding")


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[RunningCollector]:
    """A real Collector; tests are skipped where it is not built, unless the environment requires it."""
    try:
        with running_collector(tmp_path) as running:
            yield running
    except NotBuilt as problem:
        if REQUIRED in os.environ:
            raise
        pytest.skip(str(problem))


@contextmanager
def wire(service: str) -> Iterator[tuple[str, list[str]]]:
    """The address of a proxy before `service`, and the traceparent of each request that came by."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _forward(self) -> None:
            seen.append(self.headers.get("traceparent", ""))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = {name: text for name, text in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            connection = HTTPConnection(service.removeprefix("http://"))
            connection.request(self.command, self.path, body, kept)
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, text in answer.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, text)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            connection.close()

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _forward

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span.get("attributes", ())}


def creations(collecting: RunningCollector) -> list[dict[str, Any]]:
    """The spans of requests that make buckets; another POST is what `setpoint apply` asks of the process."""
    return [one for one in collecting.named("POST") if attributes(one).get("url.path") == "/storage/v1/b"]


def test_a_step_is_a_trace_and_each_request_a_span_that_the_service_is_told(
    tmp_path: Path, collecting: RunningCollector
) -> None:
    with Workspace(tmp_path, user_environment()) as workspace:
        with wire(workspace.environment["STORAGE_EMULATOR_HOST"]) as (address, seen):
            workspace.environment |= {
                "STORAGE_EMULATOR_HOST": address,
                "OTEL_EXPORTER_OTLP_ENDPOINT": collecting.url,
                "OTEL_BSP_SCHEDULE_DELAY": "100",
            }
            workspace.write(bucket("logs"), bucket("photos"))
            daemon = workspace.daemon("--log-format", "json")
            assert workspace.run("apply", "-f", "manifest.yaml").returncode == 0
            daemon.interrupt()
            assert daemon.end() == 0
        until(lambda: len(creations(collecting)) == 2)

    steps = [one for one in collecting.named("reconcile StorageBucket") if one["kind"] == _INTERNAL]
    created = creations(collecting)
    assert {attributes(one)["setpoint.name"] for one in steps} == {"logs", "photos"}
    assert len({one["traceId"] for one in created}) == 2, "each step is a trace of its own"
    by_id = {one["spanId"]: one for one in steps}
    for request in created:
        step = by_id[request["parentSpanId"]]
        assert step["traceId"] == request["traceId"]
        assert not step.get("parentSpanId"), "a step of a process is the root of its trace"
        assert attributes(request)["http.response.status_code"] == "200"
    found = [_TRACEPARENT.fullmatch(header) for header in seen]
    assert None not in found, f"every request carries a sampled header: {seen}"
    clients = {(one["traceId"], one["spanId"]) for one in collecting.spans if one["kind"] == _CLIENT}
    assert {one.groups() for one in found if one is not None} <= clients, "every request on the wire is a span"
    assert {(one["traceId"], one["spanId"]) for one in created} <= {one.groups() for one in found if one is not None}
    names = {attributes(one["resource"])["service.name"] for one in collecting.resources}
    assert names == {"setpoint"}
