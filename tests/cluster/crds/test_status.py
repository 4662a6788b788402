"""A status comes back from a cluster as it was written: whatever a definition does not name would be lost."""

from typing import Any

import pytest

from setpoint.core.decide import Cookie
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json
from setpoint.engine.conditions import UP_TO_DATE, with_conditions
from setpoint.engine.kind import Location, RemoteOperation
from setpoint.engine.oscillation import NO_OSCILLATIONS
from setpoint.engine.state import StoredState, WriteAttempt
from tests.cluster.crds.resources import Corner, manifest
from tests.kinds.full_responses import PAGES, kind_of, outputs_of

NOW = "2026-01-02T03:04:05Z"
COOKIE = Cookie("a" * 64, "b" * 64)
STEP: dict[str, Json] = {
    "at": NOW,
    "cookie": {"before": None, "after": str(COOKIE)},
    "writes": [{"changes": [{"before": None}]}],
}
MEMORY = StoredState(
    COOKIE,
    Location("projects/p/buckets/one"),
    RemoteOperation("projects/p/operations/1"),
    WriteAttempt("c" * 64, ("spec.location",), COOKIE),
    {"spec.storageClass": "d" * 64},
    {"spec.password": "uid/1/key"},
    STEP,
    NOW,
    NO_OSCILLATIONS,
    "e" * 64,
)
SPECS: dict[str, Any] = {
    "SQLInstance": {"settings": {"tier": "small"}},
    "SQLDatabase": {"instanceRef": {"external": "one"}},
    "SQLUser": {"instanceRef": {"external": "one"}},
    "StorageBucket": {},
}


@pytest.mark.parametrize("page", PAGES)
def test_a_status_is_kept_as_it_was_written(corner: Corner, page: str) -> None:
    kind = kind_of(page).name
    made = corner.create(manifest(kind, SPECS[kind])).body
    status = MEMORY.into(with_conditions(outputs_of(page), 1, UP_TO_DATE, (), NOW), with_cookie=True)
    reported = corner.report(made, status)

    assert reported.status == 200, reported.body
    assert same(reported.body["status"], status)
    assert same(corner.read(made)["status"], status)


def test_a_change_of_the_status_is_no_new_generation(corner: Corner) -> None:
    made = corner.create(manifest("StorageBucket", {})).body
    reported = corner.report(made, {"observedGeneration": 1}).body

    assert (made["metadata"]["generation"], reported["metadata"]["generation"]) == (1, 1)


def test_a_status_that_comes_with_a_spec_is_left_out(corner: Corner) -> None:
    made = corner.create({**manifest("StorageBucket", {}), "status": {"url": "gs://mine"}})

    assert "status" not in made.body
