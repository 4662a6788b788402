"""The kind Book with a defect, as authors write them; each with the claim of the contract that has to find it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import UNSET, UnsetType

from setpoint import kind

from .book_fixture import BookFixture
from .library import THE_LIBRARY, Book, BookKind, BookSpec, LibraryError

Observed = kind.Absent | kind.Present[Book]


class CreatesTwice(BookKind):
    """It finds only what this process created: what was created before a kill is created again, under another name."""

    def __init__(self, context: kind.KindContext) -> None:
        super().__init__(context)
        self.created: dict[str, str] = {}

    async def observe(self, location: kind.Location, known: str | None = None) -> Observed:
        return await super().observe(kind.Location(self.created.get(location, "nothing")))

    async def create(self, intent: kind.Intent, wanted: kind.JsonObject) -> None:
        books = THE_LIBRARY[0].books
        name = f"{intent.location}-{len(books)}" if books else intent.location
        await self.call("add", name, self.body(wanted))
        self.created[intent.location] = name


class RetriesUnderAnotherName(BookKind):
    """It takes a creation without an answer for one that came to nothing, and tries another name."""

    async def create(self, intent: kind.Intent, wanted: kind.JsonObject) -> None:
        try:
            await super().create(intent, wanted)
        except kind.RemoteUnavailable:
            await self.call("add", f"{intent.location}-again", self.body(wanted))


class TakesAnErrorForAbsence(BookKind):
    """It treats an error of the service as if there were no book."""

    async def observe(self, location: kind.Location, known: str | None = None) -> Observed:
        try:
            return await super().observe(location)
        except kind.RemoteUnavailable:
            return kind.Absent()


class IgnoresDrift(BookKind):
    """It reads a book once, and believes its own memory from then on."""

    def __init__(self, context: kind.KindContext) -> None:
        super().__init__(context)
        self.remembered: kind.Present[Book] | None = None

    async def observe(self, location: kind.Location, known: str | None = None) -> Observed:
        if self.remembered is None:
            found = await super().observe(location)
            if isinstance(found, kind.Absent):
                return found
            self.remembered = found
        return self.remembered


class WritesInAPreview(BookKind):
    """It touches a book whenever it looks at it."""

    async def observe(self, location: kind.Location, known: str | None = None) -> Observed:
        found = await self.call("find", location)
        if found is not None:
            await self.call("change", location, found)
        return await super().observe(location)


class DeletesWhatIsAbandoned(BookKind):
    """It overlooks the deletion policy of its spec."""

    def abandons(self, resource: kind.Resource) -> bool:
        return False


class LeaksASecret(BookKind):
    """Its status shows the password."""

    async def observe(self, location: kind.Location, known: str | None = None) -> Observed:
        found = await super().observe(location)
        if isinstance(found, kind.Absent):
            return found
        return kind.Present(found.live, outputs={**found.outputs, "opens": THE_LIBRARY[0].passwords.get(location, "")})


class OverwritesKeptFields(BookKind):
    """It sends what the author declared instead of what is wanted: fields that are left to other writers are lost."""

    async def update(
        self, intent: kind.Intent, wanted: kind.JsonObject, write: kind.PlannedWrite, before: kind.Present[Book]
    ) -> None:
        await self.call("change", intent.location, self.body(intent.declared.tree))


class WritesOnEveryPass(BookKind):
    """It reads something that is different each time, as part of the object."""

    def __init__(self, context: kind.KindContext) -> None:
        super().__init__(context)
        self.looks = 0

    async def observe(self, location: kind.Location, known: str | None = None) -> Observed:
        found = await super().observe(location)
        self.looks += 1
        if isinstance(found, kind.Absent):
            return found
        live = found.live
        return kind.Present(Book(live.pages, live.binding, f"look {self.looks}", live.isbn, live.insured))


class TakesAConflictForARefusal(BookKind):
    """It reports a conflict as a failure, instead of reading again."""

    def translated(self, error: LibraryError) -> kind.RemoteError:
        return kind.RemoteRefused(str(error)) if error.status in (409, 412) else super().translated(error)


class SwallowsAFailedDeletion(BookKind):
    """It takes a refused deletion for done, and says that the book is gone."""

    def __init__(self, context: kind.KindContext) -> None:
        super().__init__(context)
        self.dropped: set[str] = set()

    async def observe(self, location: kind.Location, known: str | None = None) -> Observed:
        return kind.Absent() if location in self.dropped else await super().observe(location)

    async def delete(self, location: kind.Location, before: kind.Present[Book], resource: kind.Resource) -> None:
        try:
            await super().delete(location, before, resource)
        except kind.RemoteRefused:
            self.dropped.add(location)


class ForgetsARotatedSecret(BookKind):
    """It sends a password only when it creates."""

    async def update(
        self, intent: kind.Intent, wanted: kind.JsonObject, write: kind.PlannedWrite, before: kind.Present[Book]
    ) -> None:
        body = self.body(wanted)
        body.pop("password", None)
        await self.call("change", intent.location, body)


class TakesAnUnreadCatalogueForEmpty(BookKind):
    """It treats a catalogue that it cannot read as one without books."""

    async def observe_many(self, locations: Sequence[kind.Location]) -> Mapping[kind.Location, Observed]:
        try:
            return await super().observe_many(locations)
        except kind.RemoteError:
            return {location: kind.Absent() for location in locations}


class ClothSpec(BookSpec, frozen=True):
    binding: Annotated[str | UnsetType, kind.Default("cloth")] = UNSET
    """What it is bound in."""


class ChangesADefault(kind.BaseKind[ClothSpec, Book]):
    """A book of the library, with another default than the version before."""

    group = "library.example"
    name = "Book"
    revision = 2
    locate = BookKind.locate
    observe = BookKind.observe
    create = BookKind.create
    update = BookKind.update
    delete = BookKind.delete
    call, translated, open_client, seen = BookKind.call, BookKind.translated, BookKind.open_client, BookKind.seen

    def former(self) -> Sequence[Any]:
        return [BookKind(self.context)]


def with_defect(defect: type[kind.BaseKind[Any, Any]]) -> type[BookFixture]:
    """The fixture of Book for a kind with that defect."""
    return type(f"{defect.__name__}Fixture", (BookFixture,), {"kind_type": defect})


# The claim that has to find each defect.
FOUND_BY: Final[Mapping[type[kind.BaseKind[Any, Any]], str]] = {
    CreatesTwice: "killed after any await, creating at once, it ends with one object or none",
    RetriesUnderAnotherName: "after any await, the next call has the fault LOST: it ends as declared",
    TakesAnErrorForAbsence: "an outage is not absence and no failure",
    IgnoresDrift: "corrects drift",
    WritesInAPreview: "a plan changes nothing and is what the step does",
    DeletesWhatIsAbandoned: "abandons by its own spec",
    LeaksASecret: "a secret shows nowhere",
    OverwritesKeptFields: "what is unspecified outlives a change under ignore unspecified fields",
    WritesOnEveryPass: "creates then rests",
    TakesAConflictForARefusal: "a conflict means another step and no failure",
    SwallowsAFailedDeletion: "a refused deletion keeps the resource and is reported",
    ForgetsARotatedSecret: "a rotated secret leaves the fast path and reaches the service",
    TakesAnUnreadCatalogueForEmpty: "an outage of an observation of many is not absence",
    ChangesADefault: "whatever it was done like before writes only what is declared",
}
