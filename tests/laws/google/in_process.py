"""The services without a network: the client's requests go straight into a local cloud."""

from typing import Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.localcloud import cloud

_JSON: Final = {"Content-Type": "application/json; charset=UTF-8"}


class InProcess(HttpClient):
    """Hands requests to a local cloud in this process."""

    def __init__(self, there: cloud.Cloud) -> None:
        super().__init__()
        self._cloud = there

    async def send(self, request: HttpRequest) -> HttpResponse:
        parts = urlsplit(request.url)
        query = dict(parse_qsl(parts.query))
        kind = request.headers.get("Content-Type", "")
        answer = self._cloud.handle(cloud.CloudRequest(request.method, parts.path, query, request.body or b"", kind))
        assert answer is not None
        body = b"" if answer.body is None else msgspec.json.encode(answer.body, order="sorted")
        return HttpResponse(answer.status, {**_JSON, **answer.headers}, body)
