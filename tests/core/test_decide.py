"""The cookie and the decision table."""

import pytest

from setpoint.core.decide import Cookie, Decision, decide
from setpoint.core.values.json_types import MISSING, Missing

A, B = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("cookie", "intent", "live", "decision"),
    [
        (None, A, MISSING, Decision.CREATE),
        (Cookie(A, B), A, MISSING, Decision.CREATE),
        (None, A, B, Decision.FIRST_LOOK),
        (Cookie(A, B), A, B, Decision.IN_SYNC),
        (Cookie(A, B), B, B, Decision.INTENT_CHANGED),
        (Cookie(A, B), A, A, Decision.DRIFTED),
        (Cookie(A, B), B, A, Decision.BOTH),
    ],
)
def test_the_decision_names_the_side_that_changed(
    cookie: Cookie | None, intent: str, live: str | Missing, decision: Decision
) -> None:
    assert decide(cookie, intent, live) is decision


@pytest.mark.parametrize(
    ("intent", "live", "decision"),
    [
        (B, B, Decision.REVISED),
        (B, A, Decision.REVISED_AND_CHANGED),
        (A, B, Decision.IN_SYNC),
        (A, A, Decision.DRIFTED),
        (B, MISSING, Decision.CREATE),
    ],
)
def test_a_revised_kind_is_no_change_of_intent(intent: str, live: str | Missing, decision: Decision) -> None:
    assert decide(Cookie(A, B), intent, live, is_revised=True) is decision


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        A,
        f"{A}/",
        f"{A}/{B}/",
        f"{A}/{B}\n",
        f"{A.upper()}/{B}",
        f"{A[1:]}/{B}0",
        f"c/{A}/{B}",
        None,
        7,
        [A, B],
    ],
)
def test_any_other_text_is_no_cookie(text: object) -> None:
    assert Cookie.parse(text) is None


def test_a_cookie_is_written_intent_first() -> None:
    assert str(Cookie(A, B)) == f"{A}/{B}"


@pytest.mark.parametrize("digest", ["", "g" * 64, "A" * 64, "a" * 63])
def test_a_cookie_consists_of_digests_only(digest: str) -> None:
    with pytest.raises(ValueError, match="is not a SHA-256 digest in lower-case hex"):
        Cookie(A, digest)
