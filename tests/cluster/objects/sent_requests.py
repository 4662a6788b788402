"""The requests of a harness, in the order in which they were sent."""

from dataclasses import dataclass, field

from setpoint.clients.http import HttpRequest, HttpResponse
from setpoint.clients.write_guard import is_server_dry_run
from setpoint.errors import RemoteError


@dataclass
class SentRequests:
    """An interceptor that keeps the method of each request about objects of namespaces, but watches."""

    sent: list[str] = field(default_factory=list)

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See HttpInterceptor."""
        if "/namespaces/" in request.url and "watch=true" not in request.url:
            self.sent.append("dry run" if is_server_dry_run(request) else request.method)
        return None

    def on_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """See HttpInterceptor."""
        return response

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See HttpInterceptor."""

    def take(self) -> list[str]:
        """The requests since the last call."""
        taken, self.sent = self.sent, []
        return taken
