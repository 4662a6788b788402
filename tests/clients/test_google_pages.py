"""Lists of Google's services, a page at a time."""

import asyncio

import pytest

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import AnonymousCredentials, GoogleClient, GoogleSettings, item_name, list_pages
from setpoint.clients.http import HttpResponse
from setpoint.clients.listed_page import PageTokens
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


def test_a_page_that_was_there_before_is_known_by_its_digest_and_has_the_same_items_and_successor() -> None:
    async def read() -> list[list[tuple[bytes, list[bytes]]]]:
        first, last = {"items": [{"name": "a"}], "nextPageToken": "t"}, {"items": [{"name": "b"}]}
        changed = {"items": [{"name": "c"}]}
        script = ScriptedHttp(*(response(200, one) for one in (first, last, first, last, first, changed)))
        google = GoogleClient(script, GoogleSettings(), AnonymousCredentials())
        lists = [[page async for page in list_pages(google, LIST, "p")] for _ in range(3)]
        return [[(page.digest, list(map(bytes, page))) for page in pages] for pages in lists]

    once, again, changed = asyncio.run(read())

    assert [items for _, items in once] == [[b'{"name":"a"}'], [b'{"name":"b"}']]
    assert again == once
    assert changed[0] == once[0]
    assert changed[1][1] == [b'{"name":"c"}']
    assert changed[1][0] != once[1][0]


def test_a_page_that_was_there_before_is_not_decoded() -> None:
    decoded: list[int] = []

    def decode() -> tuple[list[bytes], str]:
        decoded.append(1)
        return [b"1"], "next"

    tokens = PageTokens({})
    tokens.page(b"[1]", decode)
    page, token = tokens.page(b"[1]", decode)

    assert (token, decoded) == ("next", [1])
    assert (list(page), page[0], page[:1], len(page), decoded) == ([b"1"], b"1", [b"1"], 1, [1, 1])


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
