"""Which decision the rest of an update has: its own writes are no drift, a field of another writer is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.decide import Cookie, Decision
from setpoint.core.write_attempt import WriteAttempt

INTENT, OTHER = "a" * 64, "b" * 64
paths = st.lists(st.sampled_from([f"spec.f{number}" for number in range(6)]), max_size=4, unique=True).map(tuple)


@pytest.mark.parametrize(
    ("decision", "continued"),
    [
        (Decision.BOTH, Decision.INTENT_CHANGED),
        (Decision.REVISED_AND_CHANGED, Decision.REVISED),
        (Decision.DRIFTED, Decision.DRIFTED),
        (Decision.IN_SYNC, Decision.IN_SYNC),
        (Decision.FIRST_LOOK, Decision.FIRST_LOOK),
    ],
)
def test_an_update_under_way_is_not_drift(decision: Decision, continued: Decision) -> None:
    attempt = WriteAttempt(INTENT).with_sent("one", ("spec.a",)).with_pending(("spec.b",))

    assert attempt.continued(decision, INTENT, ["spec.b"]) is continued
    assert attempt.continued(decision, OTHER, ["spec.b"]) is decision


def test_an_update_that_sent_nothing_or_is_over_says_nothing() -> None:
    over = WriteAttempt(INTENT, unconverged_at=Cookie(INTENT, INTENT))

    assert WriteAttempt(INTENT).continued(Decision.BOTH, INTENT, []) is Decision.BOTH
    assert over.continued(Decision.BOTH, INTENT, []) is Decision.BOTH


def test_a_write_of_too_many_fields_to_list_has_begun_the_update() -> None:
    many = tuple(f"spec.field{number:04}" for number in range(400))
    attempt = WriteAttempt(INTENT).with_sent("one", many).with_pending(many)

    assert attempt.sent_writes == ("one",)
    assert attempt.pending == ()
    assert attempt.continued(Decision.BOTH, INTENT, []) is Decision.INTENT_CHANGED
    assert attempt.continued(Decision.BOTH, INTENT, many) is Decision.BOTH


@pytest.mark.laws
@given(sent=paths, pending=paths, differing=paths)
def test_only_a_field_that_is_neither_sent_nor_pending_shows_another_writer(
    sent: tuple[str, ...], pending: tuple[str, ...], differing: tuple[str, ...]
) -> None:
    attempt = WriteAttempt(INTENT).with_sent("one", ("spec.first", *sent)).with_pending(pending)

    found = attempt.continued(Decision.BOTH, INTENT, differing)

    assert (found is Decision.INTENT_CHANGED) == (set(differing) <= {"spec.first", *sent, *pending})
