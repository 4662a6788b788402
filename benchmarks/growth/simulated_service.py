"""Cloud Storage in virtual time: buckets in many projects, reads, lists and patches, drift and outages.

It takes the place of the network below the Google client: credentials, limits and errors are those of the client.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qs, urlsplit

from benchmarks.buckets import SMALL, body_of, name_of
from setpoint.clients.google.client import AnonymousCredentials, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse

# Buckets of one project: a LIST shows them on one page.
PROJECT_SIZE: Final = 100
# How long an answer takes, in seconds.
LATENCY: Final = 0.05
_IN_SYNC, _DRIFTED = b'"versioning":{"enabled":true}', b'"versioning":{"enabled":false}'
_JSON: Final = {"Content-Type": "application/json"}
_PREFIX: Final = "/storage/v1/b"


def project_of(number: int) -> str:
    """The project of a bucket, which is the name of its namespace as well."""
    return f"orders-{number // PROJECT_SIZE:04d}"


def number_of(name: str) -> int:
    """The number of the bucket of this name."""
    return int(name.rpartition("-")[2])


class SimulatedStorage(HttpClient):
    """The service with `count` buckets. It answers 503 while `is_down`; a bucket of `drifted` lacks its versioning."""

    def __init__(self, count: int = 10**7, latency: float = LATENCY) -> None:
        super().__init__()
        self.is_down = False
        self.drifted: set[int] = set()
        self.requests = 0
        # Requests by the second of virtual time; and how many there were of each verb.
        self.by_second: Counter[int] = Counter()
        self.by_verb: Counter[str] = Counter()
        self._count = count
        self._latency = latency

    def client(self) -> GoogleClient:
        """A client with limits of its own, as for Google's own endpoint."""
        return GoogleClient(self, GoogleSettings(), AnonymousCredentials())

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The response, after the latency."""
        url = urlsplit(request.url)
        name = url.path.removeprefix(_PREFIX).strip("/")
        self.requests += 1
        self.by_second[int(asyncio.get_running_loop().time())] += 1
        self.by_verb[request.method if name else "LIST"] += 1
        await asyncio.sleep(self._latency)
        if self.is_down:
            return HttpResponse(503, {}, b"")
        if not name:
            return HttpResponse(200, _JSON, self._page(parse_qs(url.query)["project"][0]))
        number = number_of(name)
        if request.method == "PATCH":
            assert b'"versioning"' in (request.body or b""), request.body
            self.drifted.discard(number)
        return HttpResponse(200, _JSON, self._body(number))

    def drift(self, numbers: Iterable[int]) -> None:
        """Another writer changes these buckets."""
        self.drifted.update(numbers)

    def _body(self, number: int) -> bytes:
        body = body_of(name_of(number), SMALL)
        return body.replace(_IN_SYNC, _DRIFTED) if number in self.drifted else body

    def _page(self, project: str) -> bytes:
        first = number_of(project) * PROJECT_SIZE
        items = map(self._body, range(first, min(first + PROJECT_SIZE, self._count)))
        return b'{"items":[' + b",".join(items) + b"]}"
