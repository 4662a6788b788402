"""The error for a name that is taken: a conflict if the object can be read, else a refusal."""

import asyncio

import pytest

from setpoint.engine.kind import Absent, LiveObservation, Present
from setpoint.errors import RemoteConflict, RemoteRefused
from setpoint.kinds.gcp.shared.config_connector import name_taken_error
from setpoint.kinds.gcp.storage_bucket import StorageBucket


async def seen(observation: LiveObservation) -> LiveObservation:
    return observation


def test_a_taken_name_of_a_readable_object_is_a_conflict() -> None:
    conflict = RemoteConflict("POST /b: 409")

    assert asyncio.run(name_taken_error(conflict, seen(Present(StorageBucket(name="x"))))) is conflict


def test_a_taken_name_of_an_unreadable_object_is_a_refusal() -> None:
    error = asyncio.run(name_taken_error(RemoteConflict("POST /b: 409"), seen(Absent())))

    with pytest.raises(RemoteRefused, match=r"choose another spec\.resourceID"):
        raise error
