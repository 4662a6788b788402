"""`functools.cached_property` without the lock that it takes before Python 3.12.

A lock for each value of each resource takes as long as to decode one. A value that two threads ask for at the same
time may be made twice.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801 - the name that it has in the standard library
        """A property that is computed once for each instance, which needs a `__dict__`."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.__doc__ = function.__doc__
            self._function: Final = function
            self._name = function.__name__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: object | None, owner: type | None = None) -> Any:  # noqa: ANN401 - as the standard library has it
            if instance is None:
                return self
            # From now on the instance has an attribute of that name, which comes first.
            value = instance.__dict__[self._name] = self._function(instance)
            return value
