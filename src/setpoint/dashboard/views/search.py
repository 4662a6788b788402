"""Search in names, labels, paths and values of resources, without secret values.

The first search reads the store once and keeps a text of each resource; from then on the watch of the rows keeps these
texts up to date. They are made of redacted documents: there is no secret value to find, nor to measure the time of.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

import orjson

from setpoint.core.secret_fields import SecretFields
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.dashboard.access.viewer import Viewer
from setpoint.dashboard.api.models import SearchAnswer
from setpoint.dashboard.views.fleet import FleetRows
from setpoint.dashboard.views.rows import id_of
from setpoint.dashboard.views.visibility import visibility_of
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource, ResourceRef

MAX_QUERY: Final = 200
_MAX_HITS: Final = 2_000
# So many characters are kept in all; resources beyond are not searched, and answers say that they are incomplete.
MAX_CHARACTERS: Final = 200_000_000
# Texts that were not searched for so long are dropped with the next change.
KEPT_SECONDS: Final = 900.0
_INDEXED_BEFORE_YIELD: Final = 50
_SEARCHED_BEFORE_YIELD: Final = 2_000
# A word that is a path, or part of one, or a path with a value.
_PATH_MARKS: Final = ".=[]"
# Positions in lists are part of paths, and not of documents.
_POSITION: Final = re.compile(r"\[\d*\]?|\d*\]")
_MARKS: Final = re.compile(r"[.=]")


@dataclass(slots=True)
class SearchTexts:
    """The text of each resource: its id and its redacted document. Empty before the first search."""

    engine: EngineContext
    most: int = MAX_CHARACTERS
    kept_seconds: float = KEPT_SECONDS
    is_complete: bool = True
    _texts: dict[ResourceRef, str] = field(default_factory=dict)
    _characters: int = 0
    # What the watch has told of since the texts began to be kept: newer than what the store is read for.
    _told: set[ResourceRef] | None = None
    _used: float = 0.0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _is_filled: bool = False
    _secrets: SecretFields = field(default_factory=SecretFields)

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, ref: ResourceRef) -> str | None:
        """The text of a resource; None for one that is not kept."""
        return self._texts.get(ref)

    async def filled(self) -> "SearchTexts":
        """With the text of every resource: the store is read, unless that was done."""
        self._used = self.engine.clock.monotonic()
        async with self._turn:
            if not self._is_filled:
                self._secrets = self.engine.secret_fields
                self._told, seen = set(), 0
                async for page in self.engine.store.pages():
                    for resource in page.resources:
                        if resource.ref.group_kind in self.engine.resource_types and resource.ref not in self._told:
                            self._keep(resource)
                        seen += 1
                        if seen % _INDEXED_BEFORE_YIELD == 0:
                            await asyncio.sleep(0)
                self._is_filled = True
        return self

    def put(self, resource: Resource) -> None:
        """The resource has changed."""
        if self._told is None:
            return
        if self._is_filled and self.engine.clock.monotonic() - self._used > self.kept_seconds:
            self._clear()
            return
        self._note(resource.ref)
        self._keep(resource)

    def drop(self, ref: ResourceRef) -> None:
        """The resource is gone."""
        if self._told is not None:
            self._note(ref)
            self._forget(ref)

    def _note(self, ref: ResourceRef) -> None:
        if self._told is not None and not self._is_filled:
            self._told.add(ref)

    def _keep(self, resource: Resource) -> None:
        self._forget(resource.ref)
        text = text_of(self._secrets.redacted(resource.document), id_of(resource.ref))
        if self._characters + len(text) > self.most:
            self.is_complete = False
            return
        self._texts[resource.ref] = text
        self._characters += len(text)

    def _forget(self, ref: ResourceRef) -> None:
        self._characters -= len(self._texts.pop(ref, ""))

    def _clear(self) -> None:
        self._texts.clear()
        self._characters, self._told, self._is_filled, self.is_complete = 0, None, False, True


@dataclass(slots=True)
class FieldSearch:
    """Searches the texts of all resources that a viewer may see."""

    texts: SearchTexts
    rows: FleetRows

    async def find(self, query: str, viewer: Viewer) -> SearchAnswer:
        """The resources in which every word occurs: in the id, a label, or as part of `path=value` of a field."""
        words = [SearchWord.of(one) for one in query.casefold().split()]
        if not words:
            return SearchAnswer(ids=(), is_complete=True)
        texts = await self.texts.filled()
        visible = await visibility_of(viewer, self.rows.scopes)
        found: list[str] = []
        for number, ref in enumerate(self.rows.sorted()):
            text = texts.get(ref)
            if text is not None and visible.sees(ref) and ref in self.rows and matches(text, words):
                found.append(id_of(ref))
                if len(found) >= _MAX_HITS:
                    return SearchAnswer(ids=tuple(found), is_complete=False)
            if number % _SEARCHED_BEFORE_YIELD == 0:
                await asyncio.sleep(0)
        return SearchAnswer(ids=tuple(found), is_complete=texts.is_complete)


@dataclass(frozen=True, slots=True)
class SearchWord:
    """A word that is looked for: as it is, as JSON has it, and the parts that every text with such a path has."""

    text: str
    in_json: str
    # Empty for a word that is no path.
    parts: tuple[str, ...]

    @staticmethod
    def of(text: str) -> "SearchWord":
        """The word, case-folded."""
        if not any(mark in text for mark in _PATH_MARKS):
            return SearchWord(text, _in_json(text), ())
        parts = tuple(_in_json(one) for one in _MARKS.split(_POSITION.sub(".", text)) if one)
        return SearchWord(text, _in_json(text), parts or ("",))

    def is_in(self, text: str) -> bool:
        """Whether a text has the word in its id, in a name, or in a value."""
        return self.in_json in text or self.text in text.partition("\n")[0]

    def may_be_path_in(self, text: str) -> bool:
        """Whether a text may have a field with such a path; False only when it certainly has none."""
        return bool(self.parts) and all(part in text for part in self.parts)


def text_of(document: JsonObject, id_: str) -> str:
    """The text of a resource, from its redacted document: the id, a line break, and what is searched as JSON."""
    # What the author wrote, and the status.
    shown = {name: value for name, value in document.items() if name != "apiVersion"}
    try:
        text = orjson.dumps(shown, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # A number or a text that is not for every JSON reader: the resource is found by its id.
        text = "{}"
    return f"{id_}\n{text}"


def matches(text: str, words: Sequence[SearchWord]) -> bool:
    """Whether every word is in a text, or in `path=value` of one of its fields."""
    folded = text.casefold()
    left = [word for word in words if not word.is_in(folded)]
    if not all(word.may_be_path_in(folded) for word in left):
        return False
    paths = [one.casefold() for one in _field_texts(orjson.loads(text.partition("\n")[2]), "")] if left else []
    return all(any(word.text in one for one in paths) for word in left)


def _in_json(text: str) -> str:
    """A text as JSON has it, without the quotes."""
    try:
        return orjson.dumps(text).decode()[1:-1]
    except orjson.JSONEncodeError:
        # Half a character, which no document has.
        return text


def _field_texts(value: Json, at: str) -> Iterator[str]:
    """Each field as `path=value`."""
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _field_texts(below, f"{at}.{name}" if at else name)
    elif isinstance(value, list | tuple) and value:
        for position, below in enumerate(value):
            yield from _field_texts(below, f"{at}[{position}]")
    else:
        shown = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
        yield f"{at}={shown}"
