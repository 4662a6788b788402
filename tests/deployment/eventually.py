"""Waiting for a cluster, which takes moments to see what it was told."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from tests.cluster.polling import until

T = TypeVar("T")


def once(look: Callable[[], T], wanted: T) -> T:
    """What `look` sees, as soon as it is what is wanted; else what it saw at last, which a test can show."""
    with suppress(TimeoutError):
        until(lambda: look() == wanted)
    return look()
