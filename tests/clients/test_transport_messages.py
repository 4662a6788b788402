"""Header fields, URLs, and the head of a request: what is written is what was meant, or is refused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.clients.foreign_errors import InvalidAddress, UnsendableRequest
from setpoint.clients.transport.messages import Headers, ServerAddress, encode_head, split_origin

NAMES = st.from_regex(r"[A-Za-z][A-Za-z-]{0,8}", fullmatch=True).filter(
    lambda name: name.lower() not in ("host", "content-length", "transfer-encoding")
)
VALUES = st.text(st.characters(min_codepoint=0x20, exclude_characters="\x7f", exclude_categories=["Cs"]), max_size=20)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=6)
ANY_TEXT = st.text(max_size=12) | st.lists(
    st.sampled_from(["a", ":", " ", "\r", "\n", "\r\n", "\0", "\t", "X: y", "é", "\ud800"]), max_size=5
).map("".join)


def parsed(head: bytes) -> tuple[str, list[tuple[str, str]]]:
    """The request line and the fields, as a server reads them that knows nothing but line breaks."""
    text, end, rest = head.partition(b"\r\n\r\n")
    assert (end, rest) == (b"\r\n\r\n", b"")
    first, *lines = text.decode().split("\r\n")
    return first, [(name, value) for name, _, value in (line.partition(": ") for line in lines)]


# --- Headers ----------------------------------------------------------------------------------------------------------


@pytest.mark.laws
@given(FIELDS)
def test_a_field_is_found_by_its_name_in_any_case_and_repeated_ones_are_joined(fields: list[tuple[str, str]]) -> None:
    headers = Headers(fields)

    expected = {name.lower(): ", ".join(v for n, v in fields if n.lower() == name.lower()) for name, _ in fields}
    assert {name: headers[name.upper()] for name in expected} == expected
    assert {name.lower(): value for name, value in headers.items()} == expected
    assert len(headers) == len(list(headers)) == len(expected)
    assert all(name.swapcase() in headers for name, _ in fields)


@pytest.mark.laws
@given(FIELDS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_replaced_fields_are_there_once_and_others_as_they_were(
    fields: list[tuple[str, str]], other: dict[str, str]
) -> None:
    found = Headers(fields).replaced(other)

    names = {name.lower() for name in other}
    assert list(found.fields) == [*(one for one in fields if one[0].lower() not in names), *other.items()]


def test_received_bytes_are_decoded_whatever_they_are() -> None:
    headers = Headers(received=[(b"x-a", b" \xff "), (b"x-b", "é".encode()), (b"x-a", b"c")])

    assert (headers["X-A"], headers["x-b"], headers.get("x-c")) == ("\udcff, c", "é", None)


def test_the_values_of_headers_are_not_shown() -> None:
    assert repr(Headers([("Authorization", "Bearer hunter2"), ("A", "b")])) == "Headers(A, Authorization)"


# --- Requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.laws
@given(FIELDS, st.none() | st.binary(max_size=10), st.sampled_from(["GET", "POST", "DELETE"]))
def test_a_head_has_exactly_its_fields(fields: list[tuple[str, str]], body: bytes | None, method: str) -> None:
    head = encode_head(method, "/a?b", "a.test:1", Headers(fields), body, defaults={"accept": "*/*"})

    first, found = parsed(head)
    given_names = {name.lower() for name, _ in fields}
    accept = [] if "accept" in given_names else [("accept", "*/*")]
    length = [("content-length", str(len(body or b"")))] if body or method != "GET" else []
    assert first == f"{method} /a?b HTTP/1.1"
    assert found == [("host", "a.test:1"), *fields, *accept, *length]


@pytest.mark.laws
@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT)
@example("GET", "/", "X", "a\r\nAuthorization: b")
@example("GET", "/", "X: y\r\nZ", "a")
@example("GET", "/ HTTP/1.1\r\nX: y\r\n\r\n", "X", "a")
@example("GET / HTTP/1.1\r\n\r\nPOST", "/", "X", "a")
@example("GET", "/", "Content-Length", "1")
@example("GET", "/", "X", "\n")
def test_no_text_becomes_another_line_of_a_request(method: str, target: str, name: str, value: str) -> None:
    try:
        head = encode_head(method, target, "a.test", {name: value}, defaults={})
    except UnsendableRequest:
        return

    first, found = parsed(head)
    assert first.split(" ") == [method, target, "HTTP/1.1"]
    assert found[:2] == [("host", "a.test"), (name, value)]
    assert [one for one in found[2:] if one != ("content-length", "0")] == []


# --- URLs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://a.test", ServerAddress(is_tls=False, host="a.test", port=80, authority="a.test")),
        ("HTTPS://A.test:443", ServerAddress(is_tls=True, host="a.test", port=443, authority="a.test")),
        ("https://a.test:80", ServerAddress(is_tls=True, host="a.test", port=80, authority="a.test:80")),
        ("http://[::1]:8080", ServerAddress(is_tls=False, host="::1", port=8080, authority="[::1]:8080")),
        ("http://bücher.test", ServerAddress(False, "xn--bcher-kva.test", 80, "xn--bcher-kva.test")),
        ("http://me:p%40ss@a.test", ServerAddress(False, "a.test", 80, "a.test", "Basic bWU6cEBzcw==")),
    ],
)
def test_a_url_names_a_server(url: str, address: ServerAddress) -> None:
    assert ServerAddress.of(url) == address


@pytest.mark.parametrize(
    "url",
    [
        *("http://", "http://:80", "ftp://a.test", "http://a.test:99999", "http://a.test:x", "http://[::1", "a.test"),
        *("http://a b", "http://a\r\nb", "http://a\tb", "http://a%0ab", "", "http://" + "é" * 70 + ".test"),
    ],
)
def test_what_names_no_server_is_no_address(url: str) -> None:
    with pytest.raises(InvalidAddress):
        ServerAddress.of(url)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://a.test", ("http://a.test", "/")),
        ("http://a.test:80?b=c", ("http://a.test:80", "/?b=c")),
        ("http://a.test:81/b%2Fc?d=%25#e", ("http://a.test:81", "/b%2Fc?d=%25")),
        ("http://a.test#b/c", ("http://a.test", "/")),
        ("http://a.test//b", ("http://a.test", "//b")),
    ],
)
def test_a_url_is_an_origin_and_a_target(url: str, parts: tuple[str, str]) -> None:
    assert split_origin(url) == parts


@pytest.mark.parametrize("url", ["http://a.test/b c", "http://a.test/b\r\nX: y", "http://a.test/é", "/a", "file:///a"])
def test_a_url_that_no_request_can_hold_is_no_address(url: str) -> None:
    with pytest.raises(InvalidAddress):
        split_origin(url)
