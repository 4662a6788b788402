"""A library with a client of its own, and the kind Book for it: what a package of another author has in it."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from msgspec import UNSET, Struct, UnsetType, convert

from setpoint import kind


class LibraryError(Exception):
    """What the client raises: a status, as libraries have them."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


@dataclass
class Library:
    """The service: its books, and what opens them."""

    books: dict[str, dict[str, Any]] = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)


class LibraryClient(AbstractAsyncContextManager["LibraryClient"]):
    """The client. It has a lifecycle, and asynchronous methods."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """There is nothing to close."""

    async def find(self, name: str) -> dict[str, Any] | None:
        await asyncio.sleep(0)
        found = self._library.books.get(name)
        return None if found is None else dict(found)

    async def catalogue(self) -> dict[str, dict[str, Any]]:
        await asyncio.sleep(0)
        return {name: dict(book) for name, book in self._library.books.items()}

    async def add(self, name: str, book: Mapping[str, Any]) -> None:
        await asyncio.sleep(0)
        if name in self._library.books:
            raise LibraryError(409, f"{name} is there")
        self._put(name, {"serial": "1", **book})

    async def change(self, name: str, book: Mapping[str, Any]) -> None:
        await asyncio.sleep(0)
        if name not in self._library.books:
            raise LibraryError(409, f"{name} is not there")
        self._put(name, {"serial": self._library.books[name]["serial"], **book})

    async def drop(self, name: str) -> None:
        await asyncio.sleep(0)
        self._library.books.pop(name, None)

    def _put(self, name: str, book: dict[str, Any]) -> None:
        if "password" in book:
            self._library.passwords[name] = book.pop("password")
        self._library.books[name] = book


class BookSpec(kind.SpecStruct, frozen=True):
    pages: int | UnsetType = UNSET
    """How long it is."""
    binding: Annotated[str | UnsetType, kind.Default("paper")] = UNSET
    """What it is bound in."""
    note: str | UnsetType = UNSET
    """What a reader wrote into it."""
    isbn: Annotated[str | UnsetType, kind.Mark.IMMUTABLE] = UNSET
    """Its number."""
    insured: Annotated[bool | UnsetType, kind.Mark.PROTECTED] = UNSET
    """Whether the library insures it."""
    password: kind.SecretValue | UnsetType = UNSET
    """What opens it."""
    sequelToRef: Annotated[kind.ResourceReference | UnsetType, kind.RefersTo("library.example", "Book")] = UNSET
    """The book that it continues."""
    resourceID: str | UnsetType = UNSET
    """Its name in the library."""
    deletionPolicy: str | UnsetType = UNSET
    """ABANDON keeps the book."""


class Book(Struct, frozen=True):
    pages: int | UnsetType = UNSET
    binding: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    isbn: str | UnsetType = UNSET
    insured: bool | UnsetType = UNSET


class BookKind(kind.BaseKind[BookSpec, Book]):
    """A book of the library."""

    group = "library.example"

    def locate(self, resource: kind.Resource, resolved: kind.ResolvedReferences) -> kind.Location:
        return kind.Location(self.object_name(resource))

    async def observe(self, location: kind.Location, known: str | None = None) -> kind.Absent | kind.Present[Book]:
        return self.seen(await self.call("find", location))

    async def observe_many(
        self, locations: Sequence[kind.Location]
    ) -> Mapping[kind.Location, kind.Absent | kind.Present[Book]]:
        books = await self.call("catalogue")
        return {location: self.seen(books.get(location)) for location in locations}

    def seen(self, found: Mapping[str, Any] | None) -> kind.Absent | kind.Present[Book]:
        """What the library's answer means."""
        if found is None:
            return kind.Absent()
        return kind.Present(convert(found, Book), outputs={"serial": found["serial"]})

    async def create(self, intent: kind.Intent, wanted: kind.JsonObject) -> None:
        await self.call("add", intent.location, self.body(wanted))

    async def update(
        self, intent: kind.Intent, wanted: kind.JsonObject, write: kind.PlannedWrite, before: kind.Present[Book]
    ) -> None:
        await self.call("change", intent.location, self.body(wanted))

    async def delete(self, location: kind.Location, before: kind.Present[Book], resource: kind.Resource) -> None:
        await self.call("drop", location)

    async def call(self, method: str, *arguments: object) -> Any:
        """What the client answers; its errors as ours."""
        client = await self.context.client("library", self.open_client)
        try:
            return await getattr(client, method)(*arguments)
        except LibraryError as error:
            raise self.translated(error) from error

    def translated(self, error: LibraryError) -> kind.RemoteError:
        """Our error for a status of the library."""
        if error.status in (409, 412):
            return kind.RemoteConflict(str(error))
        return kind.RemoteRefused(str(error)) if error.status == 403 else kind.RemoteUnavailable(str(error))

    def open_client(self) -> LibraryClient:
        """The client of the library."""
        return LibraryClient(THE_LIBRARY[0])


# The library that the environment would name.
THE_LIBRARY: list[Library] = [Library()]
