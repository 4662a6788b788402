"""A name that is taken: adopted when there is something to see, and told when there is not."""

import asyncio

import pytest

from setpoint.engine.kind import Absent, LiveObservation, Present
from setpoint.errors import RemoteConflict, RemoteRefused
from setpoint.kinds.gcp.shared.config_connector import name_taken_error
from setpoint.kinds.gcp.storage_bucket import StorageBucket


async def seen(look: LiveObservation) -> LiveObservation:
    return look


def test_what_can_be_seen_by_now_is_looked_at_again() -> None:
    conflict = RemoteConflict("POST /b: 409")

    assert asyncio.run(name_taken_error(conflict, seen(Present(StorageBucket(name="x"))))) is conflict


def test_a_name_under_which_nothing_can_be_seen_needs_the_author() -> None:
    error = asyncio.run(name_taken_error(RemoteConflict("POST /b: 409"), seen(Absent())))

    with pytest.raises(RemoteRefused, match=r"choose another spec\.resourceID"):
        raise error
