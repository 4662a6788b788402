"""What a tracer is told of requests. Imported once there is one; without, a request costs one look at a variable."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from setpoint.clients.transport.messages import Headers
from setpoint.core.values.deferred_dataclass import replace

RequestT = TypeVar("RequestT", bound="TracedRequest")
ResponseT = TypeVar("ResponseT", bound="TracedResponse")
# Told how a request ended: its status, and the name of the error where there was no response.
RequestEnd = Callable[[int, str], None]
# Told which resources a request asked for, by group, kind, namespace and name: their next steps are linked to it.
TriggeredSteps = Callable[[Iterable[tuple[str, str, str, str]]], None]


class TracedRequest(Protocol):
    """What is read of a request."""

    @property
    def method(self) -> str:
        """Its method."""
        ...

    @property
    def url(self) -> str:
        """Its URL, with a query that may hold secrets."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers."""
        ...


class TracedResponse(Protocol):
    """What is read of a response."""

    @property
    def status(self) -> int:
        """Its status."""
        ...


class RequestTracer(Protocol):
    """Records requests as spans."""

    def begin(self, method: str, url: str) -> tuple[Mapping[str, str], RequestEnd]:
        """The headers that carry the trace on, and what to call at the end."""
        ...

    def carried(self) -> Mapping[str, str]:
        """The headers that carry the current trace on, without a span."""
        ...

    def served(self, method: str, path: str, headers: Mapping[str, str]) -> AbstractContextManager[TriggeredSteps]:
        """A span around a request that this process answers."""
        ...


async def send_traced(
    tracer: RequestTracer, request: RequestT, send: Callable[[RequestT], Awaitable[ResponseT]]
) -> ResponseT:
    """The response to the request, sent with the headers of its span."""
    headers, end = tracer.begin(request.method, request.url)
    try:
        response = await send(replace(request, headers=Headers.of(request.headers).replaced(headers)))  # type: ignore[type-var]
    except BaseException as error:
        end(0, type(error).__name__)
        raise
    end(response.status, "")
    return response
