"""The histogram of durations counts them together; what it shows is as if each were counted at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.runtime.workqueue.statistics import QUEUE_BUCKETS, DurationHistogram

pytestmark = pytest.mark.laws

_durations = st.floats(min_value=0.0, max_value=1e6) | st.sampled_from(QUEUE_BUCKETS)


@given(st.lists(_durations, max_size=40), st.integers(min_value=1, max_value=40), st.integers(0, 40))
def test_each_duration_is_in_every_bucket_that_it_fits(durations: list[float], times: int, looked_at: int) -> None:
    histogram = DurationHistogram()
    for number, seconds in enumerate(durations * times):
        if number == looked_at:
            histogram.snapshot()
        histogram.observe(seconds)

    snapshot = histogram.snapshot()

    assert snapshot.at_most == tuple(sum(one <= bucket for one in durations) * times for bucket in QUEUE_BUCKETS)
    assert snapshot.count == len(durations) * times
    assert snapshot.seconds == pytest.approx(sum(durations) * times)
