"""The expected children of a website, whichever writer edits them: without digests, merges or stored state.

The model sees everything. It knows the last writer of each value, which the engine has to find out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from setpoint.core.values.paths import Path, Selector

PAGE, GALLERY = "ConfigMap/shop-page", "Gallery/shop"
# The editable fields, by child; the places within are entries, or the one value.
SINGLE: Final = {PAGE: ("theme",), GALLERY: ("columns",)}
BY_ENTRY: Final = {PAGE: (), GALLERY: ("captions", "pictures", "tags")}
MANAGED: Final = {PAGE: "title", GALLERY: "heading"}

# A field, and the name of the entry in it; "" for a field that is one value.
Spot = tuple[str, str]
Values = dict[Spot, Any]


def generated(key: str, spec: Mapping[str, Any]) -> Values:
    """What the owner generates in each editable field of a child."""
    if key == PAGE:
        return {("theme", ""): spec["theme"]}
    return {
        ("columns", ""): spec["columns"],
        **{("captions", name): text for name, text in spec["captions"].items()},
        **{("pictures", name): file for name, file in spec["pictures"].items()},
        **{("tags", name): name for name in spec["tags"]},
    }


def values_of(key: str, document: Any) -> Values:
    """What is at each spot of the live child."""
    if key == PAGE:
        theme = document["data"].get("theme")
        return {} if theme is None else {("theme", ""): theme}
    spec = document["spec"]
    return {
        **({("columns", ""): spec["columns"]} if "columns" in spec else {}),
        **{("captions", name): text for name, text in spec.get("captions", {}).items()},
        **{("pictures", one["name"]): one["file"] for one in spec.get("pictures", ())},
        **{("tags", name): name for name in spec.get("tags", ())},
    }


def path_of(key: str, spot: Spot) -> Path:
    """Where a spot is in the document."""
    name, entry = spot
    path = Path(("data" if key == PAGE else "spec", name))
    if not entry:
        return path
    return path / (Selector((("name", entry),)) if name == "pictures" else entry)


@dataclass(slots=True)
class Sheet:
    """One child: what is in it, what the owner wrote there last, and what another writer edited since."""

    live: Values
    base: Values
    edited: set[Spot] = field(default_factory=set)
    torn: set[Spot] = field(default_factory=set)
    # What cannot be found out after the process died: another writer edited what the owner had written just before, and
    # what was there before both is all that is on record; or another writer wrote what the owner was about to write.
    unsure: Values = field(default_factory=dict)
    announced: Values | None = None
    # Whether it is in the owner's status; until then, the owner knows its child by the owner reference alone.
    is_on_record: bool = True

    def write(self, spot: Spot, value: Any) -> None:
        """Another writer writes there, or removes what is there for None."""
        if spot in self.unsure and value != self.base.get(spot):
            self.base = {**self.base, spot: self.unsure.pop(spot)}
        if self.announced is not None and value == self.announced.get(spot):
            self.base = {**self.base, spot: value}
        self.live = {**self.live, spot: value}
        if value is None:
            del self.live[spot]
        # Back at what the owner wrote, or emptied where only one value is: it is the owner's again.
        is_handed_back = value == self.base.get(spot) or (value is None and not spot[1])
        (self.edited.discard if is_handed_back else self.edited.add)(spot)

    def follow(self, wanted: Values) -> None:
        """The owner writes what it wants, wherever there is no edit."""
        for spot in {**self.live, **self.base, **wanted}:
            new = wanted.get(spot)
            if spot in self.edited and self.live.get(spot) != new:
                if self.base.get(spot) != new:
                    self.torn.add(spot)
                continue
            self.edited.discard(spot)
            self.live = {**self.live, spot: new}
            if new is None:
                del self.live[spot]
        self.torn &= self.edited
        self.base = dict(wanted)


@dataclass(slots=True)
class Model:
    """The author's spec, and a sheet for each child that is there."""

    spec: dict[str, Any]
    sheets: dict[str, Sheet] = field(default_factory=dict)
    has_source: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether all children can be made."""
        return self.has_source or not self.spec["certificate"]

    def make(self, key: str) -> None:
        """The owner has written this child, or seen that there is nothing to write."""
        wanted = generated(key, self.spec)
        sheet = self.sheets.setdefault(key, Sheet(dict(wanted), dict(wanted)))
        sheet.follow(wanted)
        sheet.unsure, sheet.announced, sheet.is_on_record = {}, None, True

    def make_and_die(self, key: str) -> None:
        """The same, and the process died before it could record it."""
        old = self.sheets.get(key)
        before, torn = (old.base, set(old.torn)) if old else (generated(key, self.spec), set[Spot]())
        self.make(key)
        sheet = self.sheets[key]
        sheet.is_on_record = old is not None and old.is_on_record
        # Where there is an edit, nothing shows what the owner made of it.
        sheet.base = {**sheet.base, **{spot: before.get(spot) for spot in sheet.edited}}
        sheet.torn &= torn
        spots = {**before, **sheet.base}
        sheet.unsure = {spot: before.get(spot) for spot in spots if before.get(spot) != sheet.base.get(spot)}

    def announce(self, key: str) -> None:
        """The owner was about to write this child."""
        sheet = self.sheets.get(key)
        if sheet is None:
            return
        wanted = sheet.announced = generated(key, self.spec)
        # Where an edit has the same value, both agree.
        agreed = {spot for spot in sheet.edited if sheet.live.get(spot) == wanted.get(spot)}
        sheet.base = {**sheet.base, **{spot: wanted.get(spot) for spot in agreed}}
        sheet.edited -= agreed
        sheet.torn -= agreed

    def write_down(self) -> None:
        """What was done before is on record by now."""
        for sheet in self.sheets.values():
            sheet.unsure, sheet.is_on_record = {}, True

    def make_all(self) -> None:
        """The owner has done all that it can."""
        self.make(PAGE)
        if self.is_whole:
            self.make(GALLERY)

    def edits(self) -> Iterator[tuple[str, str]]:
        """How each edit is reported, and where it is."""
        for key, sheet in self.sheets.items():
            title = key.replace("/", " web/")
            for spot in sheet.edited:
                yield "conflicting" if spot in sheet.torn else "preserved", f"{title} {path_of(key, spot)}"
