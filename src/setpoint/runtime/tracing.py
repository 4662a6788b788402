"""Traces by OpenTelemetry, where the environment asks for them: a step is a span, and so is each of its requests.

Imported only then; `setpoint[otel]` installs what it takes. Nothing here waits for a collector.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from setpoint import __version__
from setpoint.clients.http import install_request_tracer
from setpoint.clients.request_tracing import RequestEnd, TriggeredSteps
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import StepEnd, install_step_tracer

_log: Final = logging.getLogger(__name__)
# How long the end of a process may be delayed by spans that are not sent yet.
_FLUSH_SECONDS: Final = 3.0
# Exit codes of commands that did what they were asked: 2 is a plan with changes.
_SUCCEEDED: Final = (0, 2)
# So many resources that a request asked for are remembered until their next step.
_MOST_TRIGGERS: Final = 10_000


class _ReportingExporter(SpanExporter):
    """Sends spans; what goes wrong is logged once, until it goes well again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._has_failed = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See SpanExporter."""
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - a collector must not end the thread
            _log.debug("traces not sent", extra={"why": type(error).__name__})
            result = SpanExportResult.FAILURE
        has_failed = result is not SpanExportResult.SUCCESS
        if has_failed and not self._has_failed:
            _log.warning("traces not sent", extra={"why": "the collector does not take them: they are dropped"})
        self._has_failed = has_failed
        return result

    def shutdown(self) -> None:
        """See SpanExporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """See SpanExporter."""
        return True


class OtelTracer:
    """The RequestTracer and StepTracer of a process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # The exporter would log each failure with a traceback.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        resource = Resource.create({"service.name": "setpoint", "service.version": __version__})
        if name := environment.get("OTEL_SERVICE_NAME"):
            resource = resource.merge(Resource({"service.name": name}))
        # The sampler is that of OTEL_TRACES_SAMPLER, the collector that of OTEL_EXPORTER_OTLP_ENDPOINT.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(_ReportingExporter(OTLPSpanExporter())))
        self._tracer = self._provider.get_tracer("setpoint", __version__)
        self._propagator = TraceContextTextMapPropagator()
        self._triggers: OrderedDict[ResourceRef, SpanContext] = OrderedDict()

    # --- Requests -----------------------------------------------------------------------------------------------------

    def begin(self, method: str, url: str) -> tuple[Mapping[str, str], RequestEnd]:
        """See RequestTracer."""
        span = self._tracer.start_span(method, kind=SpanKind.CLIENT, attributes=_attributes(method, url))
        headers: dict[str, str] = {}
        self._propagator.inject(headers, trace.set_span_in_context(span))

        def end(status: int, error: str) -> None:
            if status:
                span.set_attribute("http.response.status_code", status)
            if error or status >= 400:
                span.set_attribute("error.type", error or str(status))
                span.set_status(StatusCode.ERROR)
            span.end()

        return headers, end

    def carried(self) -> Mapping[str, str]:
        """See RequestTracer."""
        headers: dict[str, str] = {}
        self._propagator.inject(headers)
        return headers

    @contextmanager
    def served(self, method: str, path: str, headers: Mapping[str, str]) -> Iterator[TriggeredSteps]:
        """See RequestTracer."""
        above = self._propagator.extract({name.lower(): value for name, value in headers.items()})
        attributes = {"http.request.method": method, "http.route": path, "url.path": path, "url.scheme": "http"}
        name = f"{method} {path}"
        with self._tracer.start_as_current_span(name, above, SpanKind.SERVER, attributes) as span:

            def triggered(names: Iterable[tuple[str, str, str, str]]) -> None:
                for one in names:
                    self._triggers[ResourceRef(*one)] = span.get_span_context()
                    if len(self._triggers) > _MOST_TRIGGERS:
                        self._triggers.popitem(last=False)

            yield triggered

    # --- Steps --------------------------------------------------------------------------------------------------------

    @contextmanager
    def step(self, ref: ResourceRef, trigger: str) -> Iterator[StepEnd]:
        """See StepTracer."""
        asked = self._triggers.pop(ref, None)
        attributes = {
            "setpoint.group": ref.group,
            "setpoint.kind": ref.kind,
            "setpoint.namespace": ref.namespace,
            "setpoint.name": ref.name,
            "setpoint.trigger": trigger,
        }
        links = [] if asked is None else [Link(asked)]
        with self._tracer.start_as_current_span(f"reconcile {ref.kind}", attributes=attributes, links=links) as span:

            def end(outcome: str, decision: str, error: str) -> None:
                span.set_attributes({"setpoint.outcome": outcome, "setpoint.decision": decision})
                if error:
                    span.set_attribute("error.type", error)
                    span.set_status(StatusCode.ERROR)

            yield end

    # --- Commands -----------------------------------------------------------------------------------------------------

    @contextmanager
    def command(self, words: str) -> Iterator[Callable[[int], None]]:
        """A span around a command, unless `words` is empty; told the exit code."""
        if not words:
            yield lambda _code: None
            return
        attributes = {"setpoint.command": words}
        # The text of an error, which may hold what a manifest does, is not recorded.
        with self._tracer.start_as_current_span(
            f"setpoint {words}", attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:

            def ended(code: int) -> None:
                span.set_attribute("process.exit.code", code)
                if code not in _SUCCEEDED:
                    span.set_status(StatusCode.ERROR)

            try:
                yield ended
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise

    # --- The process --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Sends what is left, as far as that takes no longer than a moment."""
        flushing = threading.Thread(target=self._provider.shutdown, daemon=True)
        flushing.start()
        flushing.join(_FLUSH_SECONDS)


@contextmanager
def tracing(environment: Mapping[str, str], command: str = "") -> Iterator[Callable[[int], None]]:
    """Steps and requests inside are traced, and log lines have the ids. TRACEPARENT names the span above, if any.

    So is the command of these words, if there are any, with the exit code that the value is told.
    """
    tracer = OtelTracer(environment)
    above = TraceContextTextMapPropagator().extract({"traceparent": environment.get("TRACEPARENT", "")})
    token, make_record = context.attach(above), logging.getLogRecordFactory()

    def make_traced_record(*arguments: Any, **more: Any) -> logging.LogRecord:  # noqa: ANN401 - as logging calls it
        record = make_record(*arguments, **more)
        found = trace.get_current_span().get_span_context()
        if found.is_valid:
            record.trace_id, record.span_id = f"{found.trace_id:032x}", f"{found.span_id:016x}"
        return record

    logging.setLogRecordFactory(make_traced_record)
    install_request_tracer(tracer)
    install_step_tracer(tracer)
    try:
        with tracer.command(command) as ended:
            yield ended
    finally:
        install_request_tracer(None)
        install_step_tracer(None)
        logging.setLogRecordFactory(make_record)
        context.detach(token)
        tracer.close()


def _attributes(method: str, url: str) -> dict[str, str | int]:
    """Those of the semantic conventions; no query, which may hold a secret, and no user of the URL."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    authority = host if parts.port is None else f"{host}:{parts.port}"
    return {
        "http.request.method": method,
        "url.full": f"{parts.scheme}://{authority}{parts.path}",
        "url.path": parts.path,
        "url.scheme": parts.scheme,
        "server.address": host,
        "server.port": port,
    }
