"""An HTTP client whose answers are written down beforehand."""

import msgspec

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse


class ScriptedHttp(HttpClient):
    """Answers in order; the last one again and again."""

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
    """Google's form of an error."""
    error = {"code": status, "message": message, "errors": [{"domain": "global", "reason": reason, "message": message}]}
    return response(status, {"error": error}, **headers)
