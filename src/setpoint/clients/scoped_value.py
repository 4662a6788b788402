"""A context variable that is set inside a `with` block."""

from contextvars import ContextVar, Token
from typing import Generic, TypeVar

T = TypeVar("T")


class ScopedValue(Generic[T]):
    """Sets a context variable for the block: in this task, and in the tasks that are started inside."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable = variable
        self._value = value
        self._token: Token[T] | None = None

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        self._variable.reset(self._token)
