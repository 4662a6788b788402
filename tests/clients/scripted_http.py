"""An HTTP client with scripted responses."""

import msgspec

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse


class ScriptedHttp(HttpClient):
    """Returns the responses in order; the last one is repeated."""

    def __init__(self, *answers: HttpResponse) -> None:
        super().__init__()
        self.answers = list(answers)
        self.requests: list[HttpRequest] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def response(status: int, body: object = None, **headers: str) -> HttpResponse:
    return HttpResponse(
        status, {name.replace("_", "-"): text for name, text in headers.items()}, msgspec.json.encode(body)
    )


def error_response(status: int, reason: str, message: str = "No.", **headers: str) -> HttpResponse:
    """An error response of a Google API."""
    error = {"code": status, "message": message, "errors": [{"domain": "global", "reason": reason, "message": message}]}
    return response(status, {"error": error}, **headers)
