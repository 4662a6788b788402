"""A status is stored completely: the API server prunes every field that a definition does not name."""

from typing import Any

import pytest

from setpoint.app.kinds import described_types
from setpoint.core.decide import Cookie
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json
from setpoint.core.write_attempt import WriteAttempt
from setpoint.engine.conditions import UP_TO_DATE, failure, with_conditions
from setpoint.engine.contention.oscillation import NO_OSCILLATIONS
from setpoint.engine.kind import Location, Reconciliation, RemoteOperation, ResourceType
from setpoint.engine.owner import Owner
from setpoint.engine.state import StoredState
from setpoint.errors import RemoteRefused
from tests.cluster.crds.resources import CustomResources, manifest
from tests.cluster.crds.wrong_manifests import RIGHT
from tests.kinds.full_responses import PAGES, kind_of, outputs_of

NOW = "2026-01-02T03:04:05Z"
COOKIE = Cookie("a" * 64, "b" * 64)
STEP: dict[str, Json] = {
    "at": NOW,
    "cookie": {"before": None, "after": str(COOKIE)},
    "writes": [{"changes": [{"before": None}]}],
}
STATE = StoredState(
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
def test_a_status_is_stored_as_written(resources: CustomResources, page: str) -> None:
    found = kind_of(page)
    made = resources.create(manifest(found.name, SPECS[found.name])).body
    has_cookie = found.reconciliation is Reconciliation.STATEFUL
    status = STATE.into(with_conditions(outputs_of(page), 1, UP_TO_DATE, (), NOW), with_cookie=has_cookie)
    reported = resources.replace_status(made, status)

    assert reported.status == 200, reported.body
    assert same(reported.body["status"], status)
    assert same(resources.read(made)["status"], status)


@pytest.mark.parametrize("type_", described_types().values(), ids=lambda type_: type_.name)
def test_the_status_of_a_step_whose_first_write_is_refused_is_stored(
    resources: CustomResources, type_: ResourceType
) -> None:
    made = resources.create(manifest(type_.name, RIGHT[type_.name], "refused")).body
    refused = failure(RemoteRefused("no"), deleting=False)
    minimum = type_.minimum_outputs if isinstance(type_, Owner) else {}
    status = {**minimum, **STATE.into(with_conditions({}, 1, refused, (), NOW), with_cookie=False)}
    reported = resources.replace_status(made, status)

    assert reported.status == 200, reported.body
    assert same(reported.body["status"]["conditions"], status["conditions"])


def test_a_status_update_does_not_raise_the_generation(resources: CustomResources) -> None:
    made = resources.create(manifest("StorageBucket", {})).body
    reported = resources.replace_status(made, {"observedGeneration": 1}).body

    assert (made["metadata"]["generation"], reported["metadata"]["generation"]) == (1, 1)


def test_a_status_in_a_create_request_is_ignored(resources: CustomResources) -> None:
    made = resources.create({**manifest("StorageBucket", {}), "status": {"url": "gs://mine"}})

    assert "status" not in made.body
