"""Traces, as a real OTLP receiver gets them: steps, requests, and what triggered them; none without a collector."""

import asyncio
import gzip
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.runtime.tracing import tracing
from tests.cli.workspace import Workspace, bucket

PARENT: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE: Final = "0af7651916cd43dd8448eb211c80319c"


class Receiver:
    """An OTLP receiver over HTTP: it decodes the messages of the specification."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in tuple(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def named(self, start: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(start)]


@contextmanager
def receiver(status: int = 200) -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces" and status == 200:
                found.requests.append(ExportTraceServiceRequest.FromString(body))
            self._answer()

        def do_GET(self) -> None:
            found.headers.append({name.lower(): value for name, value in self.headers.items()})
            self._answer()

        def _answer(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def test_a_step_is_a_span_and_so_is_each_of_its_requests(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    with receiver() as collector:
        done = workspace.run(
            "apply", "-f", "manifest.yaml", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, TRACEPARENT=PARENT
        )

    assert done.returncode == 0, done.stderr
    (step, *_) = collector.named("reconcile StorageBucket")
    (created,) = collector.named("POST")
    assert step.trace_id.hex() == created.trace_id.hex() == TRACE
    (command,) = collector.named("setpoint apply")
    assert command.parent_span_id.hex() == "b7ad6b7169203331"
    assert step.parent_span_id == command.span_id
    assert attributes(command) == {"setpoint.command": "apply", "process.exit.code": 0}
    assert created.parent_span_id in {one.span_id for one in collector.named("reconcile")}
    assert created.kind == Span.SPAN_KIND_CLIENT
    said = attributes(created)
    assert said["http.request.method"] == "POST"
    assert said["http.response.status_code"] == 200
    assert said["url.path"] == "/storage/v1/b"
    assert said["url.full"] == f"{workspace.environment['STORAGE_EMULATOR_HOST']}/storage/v1/b"
    assert attributes(step)["setpoint.name"] == "logs"
    (resource, *_) = collector.requests[0].resource_spans
    named = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert named["service.name"] == "setpoint"


def test_a_step_of_a_process_is_a_trace_linked_to_the_command_that_asked_for_it(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    with receiver() as collector:
        workspace.environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        daemon = workspace.daemon("--log-format", "json")
        assert workspace.run("apply", "-f", "manifest.yaml", TRACEPARENT=PARENT).returncode == 0
        daemon.until(lambda: '"event":"written"' in daemon.text)
        daemon.interrupt()
        assert daemon.end() == 0

    (served,) = collector.named("POST /v1/apply")
    (command,) = collector.named("setpoint")
    assert command.name == "setpoint apply", "a process that goes on has no span of its own"
    assert served.parent_span_id == command.span_id
    linked = [span for span in collector.named("reconcile") if span.links]
    assert served.trace_id.hex() == TRACE, "the traceparent of the command is honoured"
    assert [link.span_id for span in linked for link in span.links] == [served.span_id]
    assert linked[0].trace_id.hex() != TRACE, "a step is a trace of its own"
    (line,) = [one for one in map(json.loads, daemon.text.splitlines()) if one["event"] == "written"]
    spans = {(one.trace_id.hex(), one.span_id.hex()) for one in collector.named("reconcile")}
    assert (line["trace_id"], line["span_id"]) in spans


def test_requests_carry_the_trace_on_and_no_span_has_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(url: str) -> None:
        http = HttpClient()
        await http.send(HttpRequest("GET", f"{url}/path?token=s3cret", {"Authorization": "Bearer s3cret"}))
        await http.close()

    with receiver() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with tracing({"TRACEPARENT": PARENT}):
            asyncio.run(ask(collector.url.replace("//", "//user:s3cret@")))

    (span,) = collector.named("GET")
    (headers,) = collector.headers
    assert headers["traceparent"] == f"00-{TRACE}-{span.span_id.hex()}-01"
    assert headers["authorization"] == "Bearer s3cret"
    assert "s3cret" not in str(collector.requests)


def test_a_command_that_fails_says_so_in_its_span_without_the_text(workspace: Workspace) -> None:
    with receiver() as collector:
        workspace.environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        workspace.write(bucket("logs"))
        planned = workspace.run("plan", "-f", "manifest.yaml")
        workspace.write("kind: s3cret\n")
        refused = workspace.run("apply", "-f", "manifest.yaml")

    plan, apply = collector.named("setpoint plan")[0], collector.named("setpoint apply")[0]
    assert (planned.returncode, attributes(plan)["process.exit.code"], plan.status.code) == (2, 2, 0)
    assert refused.returncode == 1
    assert attributes(apply) == {"setpoint.command": "apply", "error.type": "ManifestInvalid"}
    assert apply.status.code == Status.STATUS_CODE_ERROR
    assert "s3cret" not in str(collector.requests)


def test_a_sampler_that_takes_nothing_sends_nothing(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    with receiver() as collector:
        asked = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_TRACES_SAMPLER": "always_off"}
        done = workspace.run("apply", "-f", "manifest.yaml", **asked)
        disabled = workspace.run("plan", "-f", "manifest.yaml", **(asked | {"OTEL_SDK_DISABLED": "true"}))

    assert (done.returncode, disabled.returncode) == (0, 0)
    assert collector.requests == []


@pytest.mark.parametrize("status", [0, 500])
def test_a_collector_that_is_dead_or_refuses_fails_no_step(workspace: Workspace, status: int) -> None:
    workspace.write(bucket("logs"))
    with receiver(status or 200) as collector:
        address = collector.url if status else "http://127.0.0.1:1"
        done = workspace.run("apply", "-f", "manifest.yaml", OTEL_EXPORTER_OTLP_ENDPOINT=address)

    assert done.returncode == 0
    assert done.stdout == "StorageBucket default/logs created\ncreated 1\n"
    assert "Traceback" not in done.stderr


def test_without_a_collector_nothing_of_it_is_imported_and_no_tracer_is_asked(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    program = (
        "import sys; from setpoint.cli.main import main; from setpoint.clients import http as r; "
        "from setpoint.engine.step import outcomes as o; "
        "sys.argv[1:] = ['apply', '-f', 'manifest.yaml']\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
        "assert r.request_tracer() is None and o._installed.tracer is None"
    )

    done = workspace.run_program(sys.executable, "-c", program)

    assert done.returncode == 0, done.stderr
