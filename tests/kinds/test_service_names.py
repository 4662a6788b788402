"""The names that manifests may have are those that the service allows: a refusal comes before the first request."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from setpoint.kinds.gcp.shared.config_connector import BUCKET_NAME, INSTANCE_NAME
from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.sql import rules as sql_rules
from setpoint.localcloud.storage import bucket_model

pytestmark = pytest.mark.laws

PARTS = st.sampled_from(["a", "b1", "goog", "google", "-", "_", ".", "..", "192.168.0.1", "10", "x" * 62, "A", "é", ""])
NAMES = st.lists(PARTS, max_size=6).map("".join) | st.text("ab0-_.", max_size=70)


@given(NAMES)
@example("a")
@example("ab")
@example("abc")
@example("a.b")
@example("goo.gle")
@example("x" * 63)
@example("x" * 64)
@example(f"{'x' * 63}.{'y' * 63}")
@example(f"{'x' * 64}.y")
@example(".".join(["x" * 55] * 4))
@example(".".join(["x" * 54] * 4))
@example("1.2.3.4")
@example("1.2.3.444")
def test_a_bucket_may_have_the_names_that_the_service_allows(name: str) -> None:
    assert BUCKET_NAME.allows(name) == is_accepted(bucket_model.check_name, name)


@given(NAMES)
@example("a")
@example("a-")
@example("a-b")
def test_an_instance_may_have_the_names_that_the_service_allows(name: str) -> None:
    # Together with its project a name may have 98 characters: which project, the plan knows.
    assume(len(name) < 90)

    assert INSTANCE_NAME.allows(name) == is_accepted(partial(sql_rules.check_name, ""), name)


def is_accepted(check: Callable[[str], None], name: str) -> bool:
    try:
        check(name)
    except CloudApiError:
        return False
    return True
