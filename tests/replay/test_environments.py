"""Environment variables are replayed as they were recorded, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.errors import NotRecorded
from setpoint.replay.snapshot import RecordingEnvironment, ReplayEnvironment

names = st.sampled_from("ABCD")
environments = st.dictionaries(names, st.text(max_size=3))


@given(environments, st.lists(names))
def test_recorded_variables_are_replayed_and_no_others(environment: dict[str, str], asked: list[str]) -> None:
    noted: dict[str, str | None] = {}
    watched = RecordingEnvironment(environment, noted)
    answers = [watched.get(name) for name in asked]

    recorded = ReplayEnvironment(noted)

    assert [recorded.get(name) for name in asked] == answers
    assert dict(recorded) == {name: text for name, text in environment.items() if name in asked}
    assert len(recorded) == len(dict(recorded))
    for name in set("ABCD") - set(asked):
        with pytest.raises(NotRecorded, match=f"the variable {name} was not asked for"):
            recorded.get(name)


def test_a_recording_environment_reads_like_its_source() -> None:
    watched = RecordingEnvironment({"A": "1"}, {})

    assert (dict(watched), len(watched), "B" in watched) == ({"A": "1"}, 1, False)
