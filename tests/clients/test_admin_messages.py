"""Messages of the admin API."""

from collections.abc import Iterator

import pytest

from setpoint.clients.admin_api import ErrorBody, error_body, error_from
from setpoint.errors import RemoteRefused, SetpointError


def _all_below(error: type[SetpointError]) -> Iterator[type[SetpointError]]:
    for one in error.__subclasses__():
        yield one
        yield from _all_below(one)


OURS = sorted((one for one in _all_below(SetpointError) if one.__module__ == "setpoint.errors"), key=str)


@pytest.mark.parametrize("error", OURS, ids=lambda error: error.__name__)
def test_every_error_is_decoded_as_its_class(error: type[SetpointError]) -> None:
    arrived = error_from(error_body(error("what, where, what to do")))

    assert (type(arrived), str(arrived)) == (error, "what, where, what to do")


@pytest.mark.parametrize("unknown", ["OfAnotherVersion", "Retry", "retry_for", "__name__"])
def test_an_unknown_error_class_is_decoded_as_remote_refused(unknown: str) -> None:
    arrived = error_from(ErrorBody(unknown, "no"))

    assert (type(arrived), str(arrived)) == (RemoteRefused, "no")
