"""What goes between a command and the process that looks after its store."""

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
def test_every_error_arrives_as_what_it_was(error: type[SetpointError]) -> None:
    arrived = error_from(error_body(error("what, where, what to do")))

    assert (type(arrived), str(arrived)) == (error, "what, where, what to do")


def test_an_error_of_another_version_is_a_clear_no() -> None:
    arrived = error_from(ErrorBody("FromTheFuture", "no"))

    assert (type(arrived), str(arrived)) == (RemoteRefused, "no")
