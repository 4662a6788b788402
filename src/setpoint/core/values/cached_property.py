"""The `cached_property` of the standard library, without the lock that it takes until Python 3.12.

The value is computed by the first thread that asks, or by several at once: it depends on the instance alone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class _CachedProperty:
    __slots__ = ("__doc__", "_compute", "_name")

    def __init__(self, compute: Callable[[Any], object]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: object, owner: type) -> object:
        if instance is None:
            return self
        # In the instance it comes before this descriptor, which is not asked again.
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:
    cached_property = _CachedProperty
