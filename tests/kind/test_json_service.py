"""A service with a JSON API: its errors, its tokens, its rate limit."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec import Struct

from setpoint.clients.http import HttpRequest, HttpResponse
from setpoint.errors import (
    RemoteConflict,
    RemoteError,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
    UserError,
)
from setpoint.kind import (
    Absent,
    FromEnvironment,
    FromSecret,
    JsonService,
    KindContext,
    ManifestInvalid,
    Present,
    Unchanged,
)
from setpoint.kind.kind_context import KindServices


@dataclass
class Answers:
    """Answers every request, in the place of a server."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    # The token that is accepted; empty for any.
    token: str = ""
    requests: list[HttpRequest] = field(default_factory=list)

    def on_request(self, request: HttpRequest) -> HttpResponse:
        """See HttpInterceptor."""
        self.requests.append(request)
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return HttpResponse(401, {}, b"{}")
        return HttpResponse(self.status, self.headers, self.body)

    def on_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """See HttpInterceptor."""
        return response

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See HttpInterceptor."""


def run(
    answers: Answers,
    call: Callable[[JsonService], Awaitable[Any]],
    address: str | FromEnvironment = "https://shop.example",
    environment: dict[str, str] | None = None,
    **options: Any,
) -> Any:
    """What a call of the service comes to."""

    async def main() -> Any:
        services = KindServices(interceptor=lambda _: answers)
        async with KindContext(environment or {}, services=services) as context:
            return await call(JsonService(context, "shop", address, **options))

    return asyncio.run(main())


def get(service: JsonService) -> Awaitable[bytes | None]:
    return service.get("things", "a b")


# --- What a response means --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "status", "error"),
    [
        *(("get", status, RemoteUnavailable) for status in (408, 425, 429, 500, 502, 503)),
        *(("get", status, RemoteRefused) for status in (301, 400, 401, 403, 405)),
        *(("post", status, RemoteConflict) for status in (409, 412)),
        *(("put", status, RemoteConflict) for status in (404, 409, 412)),
        *(("patch", status, RemoteConflict) for status in (404, 409, 412)),
        *(("post", status, RemoteRefused) for status in (400, 404, 422)),
        ("delete", 409, RemoteRefused),
        ("delete", 412, RemoteConflict),
    ],
)
def test_the_class_of_an_error_follows_from_method_and_status(
    method: str, status: int, error: type[SetpointError]
) -> None:
    def call(service: JsonService) -> Awaitable[Any]:
        body: dict[str, Any] = {"body": {}} if method in ("post", "put", "patch") else {}
        found: Awaitable[Any] = getattr(service, method)("things", **body)
        return found

    with pytest.raises(error) as found:
        run(Answers(status), call)
    assert type(found.value) is error


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"message": "no"}', "GET /things/a%20b: 400: no"),
        (b'{"error": {"message": "no"}}', "GET /things/a%20b: 400: no"),
        (b'{"error": "no"}', "GET /things/a%20b: 400: no"),
        (b'{"detail": "no", "title": "Bad"}', "GET /things/a%20b: 400: no"),
        (b'{"message": "two\\nlines\\u001b[31m"}', "GET /things/a%20b: 400: two lines\ufffd[31m"),
        (b"<html>", "GET /things/a%20b: 400"),
        (b"[]", "GET /things/a%20b: 400"),
    ],
)
def test_an_error_has_what_the_service_says_on_one_line(body: bytes, message: str) -> None:
    with pytest.raises(RemoteRefused) as found:
        run(Answers(400, body), get)

    assert (str(found.value), found.value.status) == (message, 400)


def test_a_service_says_when_to_try_again() -> None:
    with pytest.raises(RemoteUnavailable) as found:
        run(Answers(503, headers={"Retry-After": "7"}), get)

    assert found.value.after == 7


def test_only_a_404_of_the_service_itself_is_absence() -> None:
    assert run(Answers(404), get) is None
    assert run(Answers(404), lambda service: service.delete("things")) is None
    with pytest.raises(RemoteRefused, match="Check the address"):
        run(Answers(404, headers={"Content-Type": "text/html"}), get)


def test_a_part_of_a_path_never_leads_elsewhere() -> None:
    answers = Answers()

    run(answers, lambda service: service.get("things", "a/b?c#d", query={"q": "x&y"}))
    with pytest.raises(ManifestInvalid, match="cannot be a part of a URL"):
        run(answers, lambda service: service.get("things", ".."))

    assert [one.url for one in answers.requests] == ["https://shop.example/things/a%2Fb%3Fc%23d?q=x%26y"]


# --- Objects ----------------------------------------------------------------------------------------------------------


class Thing(Struct, frozen=True):
    size: int


class ThingOutputs(Struct, frozen=True):
    serial: str | None = None
    link: str | None = None


BODY = b'{"size": 3, "serial": "S", "link": null, "etag": "x"}'


def test_an_object_is_read_with_its_outputs_and_recognized_by_its_bytes() -> None:
    found = run(Answers(body=BODY), lambda service: service.observe(Thing, "things", outputs=ThingOutputs))
    assert isinstance(found, Present)
    again = run(Answers(body=BODY), lambda service: service.observe(Thing, "things", known=found.body))

    assert (found.live, found.outputs, again) == (Thing(3), {"serial": "S"}, Unchanged())
    assert run(Answers(404), lambda service: service.observe(Thing, "things")) == Absent()


def test_an_answer_that_is_no_such_object_says_nothing_about_it() -> None:
    with pytest.raises(RemoteUnavailable, match="shop: the answer is not what it should be"):
        run(Answers(body=b'{"size": "large"}'), lambda service: service.observe(Thing, "things"))


# --- Addresses and tokens ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "shop.example", "ftp://shop.example", "https://"])
def test_an_address_that_is_none_is_named_with_its_variable(text: str) -> None:
    with pytest.raises(UserError, match=r"SHOP_URL is .*: write the address of shop, as https://shop.example"):
        run(Answers(), get, FromEnvironment("SHOP_URL"), {"SHOP_URL": text})


def test_an_address_may_have_a_path_and_a_default() -> None:
    answers = Answers()

    run(answers, get, FromEnvironment("SHOP_URL", "https://shop.example/v1/"))

    assert answers.requests[0].url == "https://shop.example/v1/things/a%20b"


def test_a_token_is_sent_in_its_header() -> None:
    answers = Answers()

    run(answers, get, environment={"T": "abc"}, token=FromEnvironment("T"), header="X-Key", scheme="")

    assert answers.requests[0].headers["X-Key"] == "abc"
    assert "abc" not in f"{answers.requests[0]} {answers.requests[0]!r}"


def test_no_token_is_sent_over_http_to_another_machine() -> None:
    answers = Answers()

    with pytest.raises(RemoteRefused, match="no token is sent over http to another machine"):
        run(answers, get, "http://shop.example", {"T": "abc"}, token=FromEnvironment("T"))
    run(answers, get, "http://127.0.0.1:1", {"T": "abc"}, token=FromEnvironment("T"))
    run(answers, get, "http://localhost:1", {"T": "abc"}, token=FromEnvironment("T"))

    assert len(answers.requests) == 2


def test_a_refused_token_is_fetched_again_once() -> None:
    answers, given = Answers(token="new"), iter(["old", "new", "never"])

    async def fetch() -> str:
        return next(given)

    async def twice(service: JsonService) -> None:
        await service.get("a")
        await service.get("b")

    run(answers, twice, token=fetch)

    assert [one.headers["Authorization"] for one in answers.requests] == ["Bearer old", "Bearer new", "Bearer new"]


def test_a_token_that_stays_refused_is_not_tried_for_ever() -> None:
    answers = Answers(token="another")

    with pytest.raises(RemoteRefused, match=r"401.*Check the token"):
        run(answers, get, environment={"T": "abc"}, token=FromEnvironment("T"))

    assert len(answers.requests) == 1


def test_a_token_in_a_secret_is_that_of_the_namespace() -> None:
    with pytest.raises(SetpointError, match="Secret default/shop was not found"):
        run(Answers(), get, token=FromSecret("shop", "token"))


def test_calls_have_budgets_of_their_own_for_reads_and_writes() -> None:
    async def main() -> list[tuple[str, str, int]]:
        services = KindServices(interceptor=lambda _: Answers())
        async with KindContext(services=services) as context:
            service = JsonService(context, "shop", "https://shop.example")
            await service.get("a")
            await service.get("b")
            await service.post("c", body={})
            found = services.budgets.snapshot().budgets
            return [(one.key.service, one.key.quota, one.calls) for one in found]

    assert asyncio.run(main()) == [("shop", "reads", 2), ("shop", "writes", 1)]
