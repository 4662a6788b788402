"""How the world of the kind Book is broken."""

from collections.abc import Mapping
from typing import Any, ClassVar

from setpoint.kind import MISSING
from setpoint.testing import (
    CallFault,
    ImmutableChange,
    KindFixture,
    MovedObject,
    Part,
    ProtectedField,
    ReferringSpec,
    Spec,
    SpecifiedField,
    UnspecifiedField,
    VerbOf,
)

from .library import THE_LIBRARY, BookKind, Library, LibraryError

NAME = "moby-dick"
STATUSES = {CallFault.QUOTA: 429, CallFault.REFUSED: 403, CallFault.CONFLICT: 412}


class BookFixture(KindFixture):
    """A book in a library."""

    kind_type = BookKind
    name = NAME
    verbs: ClassVar[Mapping[str, VerbOf] | None] = {
        "find": "get",
        "catalogue": "get",
        "add": "create",
        "change": "update",
        "drop": "delete",
    }
    field = SpecifiedField("spec.pages", 100, 200, drifted=900)
    without: ClassVar[Mapping[Part, str]] = {
        Part.LABELS: "a book has no labels",
        Part.OPERATIONS: "the library answers when it is done",
    }
    unspecified = UnspecifiedField("spec.note", "ours!")
    unlisted = UnspecifiedField("spec.binding", "leather", pruned="paper")
    moved = MovedObject({"pages": 100, "resourceID": "omoo"}, "omoo")
    immutable = ImmutableChange({"isbn": "a"}, {"isbn": "b"}, 'spec.isbn cannot change from "a" to "b"')
    protections = (
        ProtectedField({"pages": 1, "insured": True}, {"pages": 2}, {"insured": False}, "insured", True, False),
    )
    referring = ReferringSpec(
        {"pages": 100, "sequelToRef": {"name": "typee"}},
        {"apiVersion": "library.example/v1", "kind": "Book", "metadata": {"name": "typee"}, "spec": {}},
        "reference Book default/typee",
    )
    abandoning: ClassVar[Spec] = {"pages": 100, "deletionPolicy": "ABANDON"}
    with_secret: ClassVar[Spec] = {
        "pages": 100,
        "password": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
    }
    outputs: ClassVar = {"serial": "1"}

    def set_up(self) -> None:
        self.library = THE_LIBRARY[0] = Library()

    def failure(self, fault: CallFault, call: str) -> LibraryError:
        return LibraryError(STATUSES.get(fault, 500), call)

    def objects(self) -> list[str]:
        return list(self.library.books)

    # Each function may be asynchronous: this one is.
    async def read(self, member: str) -> Any:
        return self.library.books.get(NAME, {}).get(member, MISSING)

    async def drift(self, member: str, value: Any) -> None:
        self.library.books[NAME][member] = value

    def create_outside(self, value: Any) -> None:
        self.library.books[NAME] = {"serial": "1", "pages": value, "binding": "paper"}

    def delete_outside(self) -> None:
        del self.library.books[NAME]

    def holds_secret(self, text: str) -> bool:
        return self.library.passwords == {NAME: text}

    async def move_output(self) -> Mapping[str, Any]:
        await self.drift("serial", "2")
        return {"serial": "2"}

    async def add_field(self) -> None:
        await self.drift("addedTomorrow", {"x": 1})
