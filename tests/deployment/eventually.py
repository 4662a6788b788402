"""Waiting for a cluster to catch up."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from tests.cluster.polling import until

T = TypeVar("T")


def once(read: Callable[[], T], wanted: T) -> T:
    """The result of `read`, as soon as it is `wanted`; else the last one, for the message of the assertion."""
    with suppress(TimeoutError):
        until(lambda: read() == wanted)
    return read()
