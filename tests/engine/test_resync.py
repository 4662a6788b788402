"""How often a resource that is as declared is reconciled again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.requeue import RESYNC_INTERVAL, jittered_resync, resync_seconds
from setpoint.engine.resource import ResourceRef
from setpoint.errors import ManifestInvalid

refs = st.builds(ResourceRef, st.just("g"), st.just("K"), st.text(max_size=20), st.text(max_size=20))


@given(refs, st.floats(min_value=1, max_value=10**9))
def test_the_next_resync_is_between_half_the_mean_and_one_and_a_half(ref: ResourceRef, mean: float) -> None:
    assert 0.5 * mean <= jittered_resync(ref, mean) < 1.5 * mean
    assert jittered_resync(ref, mean) == jittered_resync(ref, mean)


def test_resyncs_are_spread_evenly() -> None:
    drawn = [jittered_resync(ResourceRef("g", "K", "ns", f"name-{number}"), 600.0) for number in range(10_000)]

    tenths = [sum(300 + 60 * tenth <= one < 360 + 60 * tenth for one in drawn) for tenth in range(10)]

    assert sum(tenths) == 10_000
    assert all(900 < count < 1_100 for count in tenths)


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("1", 1.0), ("3600", 3600.0)])
def test_the_author_says_how_often(text: str, seconds: float) -> None:
    assert resync_seconds({RESYNC_INTERVAL: text}) == seconds
    assert resync_seconds({}) == 600.0


@pytest.mark.parametrize("text", ["", "-1", "1.5", "ten", " 5", "٣", "1e3"])
def test_anything_but_whole_seconds_is_refused(text: str) -> None:
    with pytest.raises(ManifestInvalid, match="write whole seconds"):
        resync_seconds({RESYNC_INTERVAL: text})
