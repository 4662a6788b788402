"""Lists of Google's services, a page at a time."""

import asyncio

import pytest

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import AnonymousCredentials, GoogleClient, GoogleSettings, item_name, list_pages
from setpoint.clients.http import HttpResponse
from setpoint.errors import RemoteUnavailable
from tests.clients.scripted_http import ScriptedHttp, response

LIST = GoogleCall(GoogleService.STORAGE, ("b",), {"project": "p"})


def _listed(*answers: HttpResponse) -> tuple[list[list[bytes]], list[str]]:
    """The items of each page, as bytes, and the query of each request."""

    async def read() -> tuple[list[list[bytes]], list[str]]:
        script = ScriptedHttp(*answers)
        google = GoogleClient(script, GoogleSettings(), AnonymousCredentials())
        pages = [list(map(bytes, page)) async for page in list_pages(google, LIST, "the buckets of project p")]
        return pages, [request.url.partition("?")[2] for request in script.requests]

    return asyncio.run(read())


def test_items_are_the_bytes_of_the_response() -> None:
    pages, asked = _listed(HttpResponse(200, {}, b'{"items": [{"name":"a" , "x":1.0}, {"name":"b"}], "kind": "k"}'))

    assert pages == [[b'{"name":"a" , "x":1.0}', b'{"name":"b"}']]
    assert asked == ["project=p&maxResults=1000&alt=json&prettyPrint=false"]


def test_all_pages_are_read_even_after_an_empty_one() -> None:
    pages, asked = _listed(response(200, {"nextPageToken": "t"}), response(200, {"items": [{"name": "a"}]}))

    assert pages == [[], [b'{"name":"a"}']]
    assert asked[1] == "project=p&maxResults=1000&pageToken=t&alt=json&prettyPrint=false"


def test_a_repeated_page_token_is_an_error() -> None:
    with pytest.raises(RemoteUnavailable, match="leads back to a page that was there before"):
        _listed(
            response(200, {"nextPageToken": "t"}),
            response(200, {"nextPageToken": "u"}),
            response(200, {"nextPageToken": "t"}),
        )


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"items": 3}', b'{"nextPageToken": 3}'])
def test_a_response_that_is_not_a_list_is_unavailable(body: bytes) -> None:
    with pytest.raises(RemoteUnavailable, match="the buckets of project p: the answer is not what it should be"):
        _listed(HttpResponse(200, {}, body))


@pytest.mark.parametrize("item", [b"{}", b'{"name": 3}', b"3"])
def test_an_item_without_a_name_is_an_error(item: bytes) -> None:
    with pytest.raises(RemoteUnavailable):
        item_name(item, "p")
