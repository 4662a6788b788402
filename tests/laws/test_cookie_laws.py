"""Cookies: text, and the decision for every pair of digests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.decide import Cookie, Decision, decide
from setpoint.core.values.json_types import MISSING, Json
from tests.laws.json_values import json_values

pytestmark = pytest.mark.laws

digests = st.sampled_from("abc").map(lambda letter: letter * 64) | st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
cookies = st.builds(Cookie, digests, digests)
foreign = json_values | st.from_regex(r"c/[A-Za-z0-9_-]{27}=/[A-Za-z0-9_-]{27}=", fullmatch=True)


@given(cookies)
def test_parse_undoes_format(cookie: Cookie) -> None:
    assert Cookie.parse(str(cookie)) == cookie


@given(cookies)
def test_a_cookie_is_129_ascii_characters(cookie: Cookie) -> None:
    assert len(str(cookie).encode("ascii")) == 129


@given(foreign)
def test_any_text_that_is_no_cookie_is_none_and_no_crash(value: Json) -> None:
    assert Cookie.parse(value) is None


@given(cookies, st.integers(0, 128), st.characters(exclude_categories=["Cs"]))
def test_a_cookie_with_one_wrong_character_is_another_cookie_or_none(cookie: Cookie, at: int, wrong: str) -> None:
    written = str(cookie)
    spoiled = Cookie.parse(written[:at] + wrong + written[at + 1 :])

    assert spoiled is None or str(spoiled)[at] == wrong


@given(cookies | st.none(), digests, digests)
def test_only_an_exact_match_of_both_is_in_sync(cookie: Cookie | None, intent: str, live: str) -> None:
    assert (decide(cookie, intent, live) is Decision.IN_SYNC) == (cookie == Cookie(intent, live))


@given(cookies | st.none(), digests)
def test_an_absent_object_is_created_whatever_the_cookie_is(cookie: Cookie | None, intent: str) -> None:
    assert decide(cookie, intent, MISSING) is Decision.CREATE
