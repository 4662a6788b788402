"""Reasons and details of the Ready condition: data that code goes by, whatever the message says."""

from math import inf
from typing import Any

import pytest

from setpoint.core.conditions import ConditionReason
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.engine import conditions
from setpoint.engine.conditions import NO_DETAILS, ReadyCondition, ReadyDetails, condition_of, with_conditions
from setpoint.engine.drivers.follower import outcome_of
from setpoint.engine.kind import ValueReference
from setpoint.engine.references import output_value
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState, WaitState
from setpoint.engine.step.outcomes import Stopped
from setpoint.errors import (
    Blocked,
    BlockingLink,
    DeletionHeld,
    DependencyNotFound,
    ImmutableFieldChanged,
    OperationRunning,
    RemoteRefused,
    SetpointError,
    StillWaiting,
    WaitTimedOut,
)

NOW = "2026-01-01T00:00:00Z"
OTHER = ResourceRef("example.com", "Gadget", "default", "other")
LINKS = (BlockingLink(OTHER, "reference Gadget default/other is not ready"), BlockingLink(None, "…"))


def resource(status: Json, *, deleting: bool = False) -> Resource:
    """A resource with this status."""
    gone = {"deletionTimestamp": NOW} if deleting else {}
    metadata: dict[str, Any] = {"name": "one", "namespace": "default", "generation": 1, "uid": "1", **gone}
    return Resource({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata, "status": status})


def after(error: SetpointError, *, deleting: bool = False, has_details: bool = True) -> Resource:
    """A resource after a step that stopped with `error`; the version before kept no details."""
    status = dict(with_conditions({}, 1, conditions.failure(error, deleting=deleting), (), NOW))
    if not has_details:
        status.pop("setpoint", None)
    return resource(status, deleting=deleting)


@pytest.mark.parametrize(
    ("error", "deleting"),
    [
        (OperationRunning("operation 7: 3 of 4"), False),
        (RemoteRefused("403: no: not you"), False),
        (RemoteRefused("403: no: not you"), True),
        (DependencyNotFound("reference Gadget default/other is not found"), False),
        (ImmutableFieldChanged("spec.region cannot change"), False),
        (WaitTimedOut("not within 5 s: no address"), True),
        (StillWaiting("Pod default/web: it ends", inf), True),
    ],
)
def test_a_follower_has_the_error_of_the_step(error: SetpointError, deleting: bool) -> None:
    outcome = outcome_of(after(error, deleting=deleting))

    assert isinstance(outcome, Stopped)
    assert (type(outcome.error), str(outcome.error)) == (type(error), str(error))


def test_a_deletion_that_is_held_is_waited_for() -> None:
    outcome = outcome_of(after(DeletionHeld("the finalizer x: holds it"), deleting=True))

    assert isinstance(outcome, Stopped)
    assert repr(outcome.error) == repr(StillWaiting("the finalizer x: holds it"))


@pytest.mark.parametrize(
    ("error", "deleting", "expected"),
    [
        (RemoteRefused("403: no"), False, RemoteRefused("Update call failed: 403: no")),
        (OperationRunning("operation 7"), False, OperationRunning("Update in progress: operation 7")),
        (StillWaiting("it ends", inf), True, OperationRunning("Deletion in progress: it ends")),
        (Blocked("waiting for a of b"), False, Blocked("waiting for a of b")),
    ],
)
def test_a_status_of_the_version_before_is_followed_by_its_whole_message(
    error: SetpointError, deleting: bool, expected: SetpointError
) -> None:
    outcome = outcome_of(after(error, deleting=deleting, has_details=False))

    assert isinstance(outcome, Stopped)
    assert repr(outcome.error) == repr(expected)


def test_a_claim_is_no_outcome() -> None:
    assert outcome_of(resource(with_conditions({}, 1, conditions.CLAIMED, (), NOW))) is None


def test_details_come_back_from_a_status_and_go_with_the_next_condition() -> None:
    details = ReadyDetails("error", LINKS, is_claim=True)
    blocked = ReadyCondition("False", ConditionReason.BLOCKED, "message", details)
    first = with_conditions({"setpoint": {"location": "here"}}, 1, blocked, (), NOW)
    second = with_conditions(first, 1, conditions.UP_TO_DATE, (), NOW)

    assert ReadyDetails.of(resource(first)) == details
    assert second["setpoint"] == {"location": "here"}
    assert ReadyDetails.of(resource(second)) == NO_DETAILS


@pytest.mark.parametrize(
    "data",
    [
        None,
        1,
        "text",
        [],
        {"error": 1, "blockedOn": 2, "claim": "true"},
        {"blockedOn": [1, {}, {"why": 1}, {"name": "x"}]},
    ],
)
def test_details_that_cannot_be_read_are_left_out(data: Json) -> None:
    assert ReadyDetails.of(resource({"setpoint": {"ready": data}})) == NO_DETAILS


def test_a_status_keeps_reasons_as_plain_text() -> None:
    status: Any = with_conditions({}, 1, conditions.failure(Blocked("b", LINKS), deleting=False), (), NOW)
    (ready,) = status["conditions"]

    assert (type(ready["type"]), type(ready["reason"]), ready["reason"]) == (str, str, "Blocked")
    assert status["setpoint"]["ready"] == {
        "blockedOn": [
            {
                "group": "example.com",
                "kind": "Gadget",
                "namespace": "default",
                "name": "other",
                "why": "reference Gadget default/other is not ready",
            },
            {"why": "…"},
        ]
    }
    found = condition_of(resource(status), "Ready")
    assert found is not None
    assert found.reason == ConditionReason.BLOCKED


def test_a_chain_continues_from_a_status_of_the_version_before() -> None:
    source = after(Blocked("waiting for b of c: it is not ready; it is blocked itself: d"), has_details=False)
    value = ValueReference("spec.a", source.ref, Path.parse("status.x"))

    with pytest.raises(Blocked) as caught:
        output_value(value, source, OTHER)

    message = "waiting for status.x of Gadget default/one: it is not ready"
    theirs = "waiting for b of c: it is not ready; it is blocked itself: d"
    assert caught.value.links == (BlockingLink(source.ref, message), BlockingLink(None, theirs))
    assert str(caught.value) == f"{message}; it is blocked itself: {theirs}"


def test_a_chain_ends_where_it_leads_back() -> None:
    links = (BlockingLink(OTHER, "waiting for Gadget default/other"), BlockingLink(None, "beyond"))
    source = after(Blocked("text", links))

    with pytest.raises(Blocked) as caught:
        output_value(ValueReference("spec.a", source.ref, Path.parse("status.x")), source, OTHER)

    assert [link.why for link in caught.value.links[1:]] == ["waiting for Gadget default/other"]


def test_a_wait_of_the_version_before_continues_and_is_reported_anew() -> None:
    known = {"for": "k", "uid": "u", "intent": "i", "since": NOW, "told": NOW}
    old = StoredState.of(resource({"setpoint": {"wait": {**known, "said": "Waiting: for an address"}}}))
    new = StoredState.of(resource({"setpoint": {"wait": {**known, "reason": "Waiting", "text": "for an address"}}}))

    assert old.wait == WaitState("k", "u", "i", NOW, is_done=False, reported_at=NOW)
    assert new.wait == WaitState("k", "u", "i", NOW, False, "Waiting", "for an address", NOW)
    assert new.into({}, with_cookie=True) == {
        "setpoint": {"wait": {**known, "reason": "Waiting", "text": "for an address"}}
    }


@pytest.mark.parametrize(
    ("reason", "is_failure"),
    [("NotConverged", True), ("UpdateFailed", True), ("RolloutFailed", True), ("Waiting", False), ("Deploying", False)],
)
def test_a_reason_of_an_owner_that_ends_in_failed_is_a_failure(reason: str, *, is_failure: bool) -> None:
    assert ReadyCondition("False", reason, "").is_failure is is_failure
