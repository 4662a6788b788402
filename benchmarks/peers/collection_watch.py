"""Follows the objects of one collection by a watch, in a thread, with a value of each."""

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from types import TracebackType
from typing import Final, Generic, Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from tests.cluster.access import Access

_POLL_SECONDS: Final = 0.02
_TIMEOUT_SECONDS: Final = 600.0
T = TypeVar("T")


class _Metadata(msgspec.Struct):
    name: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="0")


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    observed_generation: int = msgspec.field(name="observedGeneration", default=0)
    conditions: list[_Condition] = []


class WatchedObject(msgspec.Struct):
    """The part of an object that is decoded: cheaply, since the harness shares the cores with what it measures."""

    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)
    data: dict[str, str] = {}


class _Event(msgspec.Struct):
    type: str
    object: WatchedObject


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[WatchedObject] = []


class CollectionWatch(Generic[T]):
    """The `value` of each object, by name: by a list, and a watch that is begun again when the API server ends it."""

    def __init__(self, access: Access, path: str, value: Callable[[WatchedObject], T]) -> None:
        self._path = path
        self._value = value
        self._values: dict[str, T] = {}
        self._is_closed = False
        self._failure: Exception | None = None
        self._connection = HTTPSConnection(urlsplit(access.url).netloc, context=access.tls())
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        with suppress(OSError):
            if self._connection.sock is not None:
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def wait_until(self, condition: Callable[[Mapping[str, T]], bool]) -> None:
        """Returns when the condition holds; TimeoutError when it does not for ten minutes."""
        end = time.monotonic() + _TIMEOUT_SECONDS
        while not condition(self._values):
            if self._failure is not None:
                raise self._failure
            if time.monotonic() > end:
                raise TimeoutError(
                    f"{_TIMEOUT_SECONDS:.0f} s were not enough; {len(self._values)} objects have changed"
                )
            time.sleep(_POLL_SECONDS)

    def _follow(self) -> None:
        try:
            while not self._is_closed:
                self._watch_from(self._list())
        except (OSError, HTTPException, ValueError, msgspec.MsgspecError) as error:
            self._failure = None if self._is_closed else error

    def _list(self) -> str:
        """The resource version of a list of all objects."""
        body = self._request(self._path).read()
        listed = msgspec.json.decode(body, type=_List)
        for one in listed.items:
            self._values[one.metadata.name] = self._value(one)
        return listed.metadata.resource_version

    def _watch_from(self, version: str) -> None:
        """Returns when the API server ends the watch."""
        decoder, response = (
            msgspec.json.Decoder(_Event),
            self._request(f"{self._path}?watch=1&resourceVersion={version}"),
        )
        while line := response.readline():
            event = decoder.decode(line)
            if event.type == "ERROR":
                break
            self._values[event.object.metadata.name] = self._value(event.object)
        response.close()
        self._connection.close()

    def _request(self, path: str) -> HTTPResponse:
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        if response.status != HTTPStatus.OK:
            raise HTTPException(f"GET {path}: {response.status} {response.read()!r}")
        return response
