"""The class of an error decides the retry."""

import pytest

from setpoint import errors
from setpoint.errors import Retry, retry_for


@pytest.mark.parametrize(
    ("error", "retry"),
    [
        (errors.ManifestInvalid("x"), Retry.ON_EDIT),
        (errors.NotJson("x"), Retry.ON_EDIT),
        (errors.ImmutableFieldChanged("x"), Retry.ON_EDIT),
        (errors.LocationChanged("x"), Retry.ON_EDIT),
        (errors.DependencyCycle("x"), Retry.ON_EDIT),
        (errors.UnknownField("x"), Retry.ON_EDIT),
        (errors.DependencyNotReady("x"), Retry.ON_CHANGE),
        (errors.DependencyNotFound("x"), Retry.ON_CHANGE),
        (errors.DependencyInvalid("x"), Retry.ON_CHANGE),
        (errors.OperationRunning("x"), Retry.ON_CHANGE),
        (errors.DeletionHeld("x"), Retry.ON_CHANGE),
        (errors.WaitTimedOut("x"), Retry.ON_CHANGE),
        (errors.Blocked("x"), Retry.ON_CHANGE),
        (errors.RemoteUnavailable("x"), Retry.BACK_OFF),
        (errors.RemoteRefused("x"), Retry.BACK_OFF),
        (errors.RemoteInvalid("x"), Retry.BACK_OFF),
        (errors.HeldByOthers("x"), Retry.BACK_OFF),
        (errors.KindNotServed("x"), Retry.BACK_OFF),
        (errors.RemoteConflict("x"), Retry.STEP_AGAIN),
        (errors.AlreadyExists("x"), Retry.STEP_AGAIN),
        (errors.RemoteExpired("x"), Retry.STEP_AGAIN),
        (errors.WriteConflict("x"), Retry.STEP_AGAIN),
        (errors.RevisionExpired("x"), Retry.STEP_AGAIN),
        (errors.StoreInUse("x"), Retry.STOP),
        (errors.LeaseLost("x"), Retry.STOP),
        (errors.WriteBlocked("x"), Retry.STOP),
        (errors.NotRecorded("x"), Retry.STOP),
        (errors.SetpointError("x"), Retry.BUG),
        (errors.Bug("x"), Retry.BUG),
        (KeyError("x"), Retry.BUG),
    ],
)
def test_the_class_of_an_error_decides_the_retry(error: Exception, retry: Retry) -> None:
    assert retry_for(error) is retry
