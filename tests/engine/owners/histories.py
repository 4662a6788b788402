"""What an author, other writers and a process that may be killed do to a website and its children, in any order."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.testing.owners.owner_harness import OwnerHarness
from tests.engine.owners.model import BY_ENTRY, GALLERY, MANAGED, PAGE, SINGLE, Model, Spot, values_of
from tests.engine.owners.owner_fixtures import secret

BEGINNING: dict[str, Any] = {
    "title": "Shop",
    "theme": "plain",
    "columns": 3,
    "captions": {"a": "one"},
    "pictures": {"p": "1"},
    "tags": ["x"],
    "certificate": "cert",
}
NAMES = ("a", "b", "c")
Deed = Callable[["History"], Awaitable[None]]


@dataclass(slots=True)
class History:
    """The world, and the model of it."""

    harness: OwnerHarness
    model: Model = field(default_factory=lambda: Model(dict(BEGINNING)))
    # Values of other writers are never the same twice, nor ever what is generated.
    number: int = 100

    def fresh(self, field_: str) -> Any:
        """A new value."""
        self.number += 1
        return self.number if field_ == "columns" else f"p{self.number}"

    async def declare(self) -> None:
        """The author hands in the spec."""
        pictures = [{"name": name, "file": file} for name, file in self.model.spec["pictures"].items()]
        await self.harness.apply({**self.model.spec, "pictures": pictures})

    async def rotate(self) -> None:
        """The source is there, with a value that it never had."""
        await self.harness.store.apply(secret("cert", key=self.fresh("key")))

    async def live(self, key: str) -> Any:
        """The document of a child, or None."""
        found = await self.harness.store.get(self.harness.at(key))
        return None if found is None else found.document

    async def write(self, key: str, spot: Spot, value: Any) -> None:
        """Another writer edits a spot of a child that is there."""
        sheet = self.model.sheets.get(key)
        if sheet is None:
            return
        sheet.write(spot, value)
        await self.harness.edit(key, *_as_written(key, spot, sheet.live))

    async def step(self) -> None:
        """A step without interruption, and all that holds after it."""
        before, plan = await self.harness.contents(), None
        if self.model.is_whole:
            plan = await self.harness.preview()
        outcome = await self.harness.step()
        self.model.make_all()
        assert isinstance(outcome, Settled if self.model.is_whole else Stopped)
        if plan is not None and isinstance(outcome, Settled):
            assert plan == outcome.plan
            after = await self.harness.contents()
            written = {f"{write.name.replace('/', ' web/')}" for write in plan.writes}
            assert {name for name in after if after[name] != before.get(name)} == written
        await self.check()
        revision = await self.harness.revision()
        await self.harness.step()
        assert await self.harness.revision() == revision

    async def check(self) -> None:
        """The children are as in the model."""
        for key, sheet in self.model.sheets.items():
            document = await self.live(key)
            assert values_of(key, document) == sheet.live
            if key == PAGE or self.model.is_whole:
                assert document["data" if key == PAGE else "spec"][MANAGED[key]] == self.model.spec["title"]
                assert document["metadata"]["labels"] == {"site": "shop"}
        if self.model.is_whole:
            assert await self.reported_edits() == set(self.model.edits())
            await self.check_copy()

    async def check_copy(self) -> None:
        """The copy is what its source is."""
        if self.model.spec["certificate"]:
            source = await self.live("Secret/cert")
            assert (await self.live("Secret/shop-tls"))["data"] == source["data"]

    async def reported_edits(self) -> set[tuple[str, str]]:
        """The edits in the condition."""
        edited = (await self.harness.conditions())["Edited"]
        if edited["status"] == "False":
            return set()
        parts = (part.partition(": ") for part in edited["message"].split("; "))
        return {(head.split()[1], place) for head, _, places in parts for place in places.split(", ")}

    async def recorded_status(self) -> Any:
        """The status, without what is recorded before a step acts."""
        status: Any = (await self.harness.resource()).status
        ours = {name: one for name, one in status.get("setpoint", {}).items() if name not in ("generating", "contests")}
        return {name: value for name, value in status.items() if name != "lastGenerated"} | {"setpoint": ours}

    async def known(self) -> Any:
        """What is on record of what was generated."""
        return (await self.harness.resource()).status.get("lastGenerated")

    async def announced(self) -> Mapping[str, Any]:
        """What is on record of what is about to be written."""
        return StoredState.of(await self.harness.resource()).generating or {}

    async def kill(self, awaits: int) -> None:
        """A step that is killed; the model sees which children were written by then, and whether it was over."""
        before, status, known = await self.harness.contents(), await self.recorded_status(), await self.known()
        begun = await self.announced()
        was_killed = await self.harness.killed_after(awaits)
        after = await self.harness.contents()
        if not was_killed or await self.recorded_status() != status:
            self.model.make_all()
            return
        if await self.known() != known:
            self.model.write_down()
        for key in (PAGE, GALLERY):
            name = key.replace("/", " web/")
            if after.get(name) != before.get(name):
                self.model.make_and_die(key)
            elif (await self.announced()).get(key) != begun.get(key):
                self.model.announce(key)


def _as_written(key: str, spot: Spot, live: dict[Spot, Any]) -> tuple[Path, Any]:
    """The field that a spot is in, and all of its value."""
    name, entry = spot
    path = Path(("data" if key == PAGE else "spec", name))
    if not entry:
        return path, live.get(spot, MISSING)
    entries = {inner: value for (outer, inner), value in live.items() if outer == name}
    match name:
        case "captions":
            return path, entries
        case "pictures":
            return path, [{"name": inner, "file": value} for inner, value in entries.items()]
        case _:
            return path, list(entries)


# --- Deeds ------------------------------------------------------------------------------------------------------------


def authors() -> st.SearchStrategy[Deed]:
    """The author wants something else."""
    entries = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(("one", "two")), max_size=3)
    changes = st.one_of(
        st.fixed_dictionaries({"title": st.sampled_from(("Shop", "Store"))}),
        st.fixed_dictionaries({"theme": st.sampled_from(("plain", "dark", "light"))}),
        st.fixed_dictionaries({"columns": st.sampled_from((3, 4, 5))}),
        st.fixed_dictionaries({"captions": entries}),
        st.fixed_dictionaries({"pictures": entries}),
        st.fixed_dictionaries({"tags": st.lists(st.sampled_from(NAMES), max_size=3, unique=True)}),
        st.fixed_dictionaries({"certificate": st.sampled_from(("", "cert"))}),
        st.fixed_dictionaries({"columns": st.sampled_from((3, 4, 5)), "captions": entries, "pictures": entries}),
    )
    return changes.map(declaring)


def declaring(change: dict[str, Any]) -> Deed:
    async def deed(history: History) -> None:
        history.model.spec |= change
        await history.declare()

    return _named(deed, f"the author wants {change}")


def edits() -> st.SearchStrategy[Deed]:
    """Another writer sets, adds or removes an entry of an editable field."""
    spots = [(key, (name, "")) for key in SINGLE for name in SINGLE[key]]
    spots += [(key, (name, entry)) for key in BY_ENTRY for name in BY_ENTRY[key] for entry in NAMES]
    return st.builds(writing, st.sampled_from(spots), st.sampled_from(("fresh", "removed", "generated")))


def writing(place: tuple[str, Spot], what: str) -> Deed:
    key, spot = place

    async def deed(history: History) -> None:
        sheet = history.model.sheets.get(key)
        if sheet is None:
            return
        value = {"removed": None, "generated": sheet.base.get(spot)}.get(what, history.fresh(spot[0]))
        if spot[0] == "tags" and what == "fresh":
            value = spot[1]
        if value is not None or spot in sheet.live:
            await history.write(key, spot, value)

    return _named(deed, f"another writer: {key} {spot} {what}")


def drifts() -> st.SearchStrategy[Deed]:
    """Another writer makes a change that the owner reverts."""
    return st.builds(drifting, st.sampled_from((PAGE, GALLERY)), st.sampled_from(tuple(DRIFTS)))


async def _manage(history: History, key: str) -> None:
    top = "data" if key == PAGE else "spec"
    await history.harness.edit(key, Path((top, MANAGED[key])), history.fresh("title"))


async def _add(history: History, key: str) -> None:
    top = "data" if key == PAGE else "spec"
    await history.harness.edit(key, Path((top, "extra")), "x")


async def _unlabel(history: History, key: str) -> None:
    await history.harness.edit(key, Path(("metadata", "labels")), {})


async def _disown(history: History, key: str) -> None:
    if history.model.sheets[key].is_on_record:
        await history.harness.edit(key, Path(("metadata", "ownerReferences")), MISSING)


async def _delete(history: History, key: str) -> None:
    await history.harness.store.delete(history.harness.at(key))
    del history.model.sheets[key]


DRIFTS = {"manages": _manage, "adds": _add, "unlabels": _unlabel, "disowns": _disown, "deletes": _delete}


def drifting(key: str, what: str) -> Deed:
    async def deed(history: History) -> None:
        if key in history.model.sheets:
            await DRIFTS[what](history, key)

    return _named(deed, f"another writer {what} {key}")


def sources() -> st.SearchStrategy[Deed]:
    """The source is rotated, or goes, or comes."""
    return st.sampled_from((rotating, removing))


async def rotating(history: History) -> None:
    await history.rotate()
    history.model.has_source = True


async def removing(history: History) -> None:
    await history.harness.store.delete(history.harness.at("Secret/cert"))
    history.model.has_source = False


async def stepping(history: History) -> None:
    await history.step()


def steps() -> st.SearchStrategy[Deed]:
    """A step without interruption."""
    return st.just(stepping)


def kills() -> st.SearchStrategy[Deed]:
    """A step that is killed."""
    return st.integers(6, 12).map(killing) | st.integers(1, 20).map(killing)


def killing(awaits: int) -> Deed:
    async def deed(history: History) -> None:
        await history.kill(awaits)

    return _named(deed, f"a step, killed after {awaits}")


def _named(deed: Deed, name: str) -> Deed:
    deed.__qualname__ = deed.__name__ = name
    return deed
