"""Search in names, labels, paths and values of resources, without secret values."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

import orjson

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.dashboard.access.viewer import Viewer
from setpoint.dashboard.api.models import SearchAnswer
from setpoint.dashboard.views.fleet import FleetRows
from setpoint.dashboard.views.rows import id_of
from setpoint.dashboard.views.visibility import visibility_of
from setpoint.engine.context import EngineContext

MAX_QUERY: Final = 200
_MAX_HITS: Final = 2_000
_MAX_SCANNED: Final = 100_000
_SCANNED_BEFORE_YIELD: Final = 50
# A word that is a path, or part of one, or a path with a value.
_PATH_MARKS: Final = ".=["


@dataclass(slots=True)
class FieldSearch:
    """Searches the documents of all resources, one search at a time: each reads the whole store."""

    engine: EngineContext
    rows: FleetRows
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(self, query: str, viewer: Viewer) -> SearchAnswer:
        """The resources in which every word occurs: in the id, a label, or as part of `path=value` of a field."""
        words, secrets = query.casefold().split(), self.engine.secret_fields
        if not words:
            return SearchAnswer(ids=(), is_complete=True)
        visible = await visibility_of(viewer, self.rows.scopes)
        found: list[str] = []
        scanned = 0
        async with self._turn:
            async for page in self.engine.store.pages():
                for resource in page.resources:
                    if resource.ref not in self.rows or not visible.sees(resource.ref):
                        continue
                    scanned += 1
                    if _matches(secrets.redacted(resource.document), id_of(resource.ref), words):
                        found.append(id_of(resource.ref))
                    if len(found) >= _MAX_HITS or scanned >= _MAX_SCANNED:
                        return SearchAnswer(ids=tuple(found), is_complete=False)
                    if scanned % _SCANNED_BEFORE_YIELD == 0:
                        await asyncio.sleep(0)
        return SearchAnswer(ids=tuple(found), is_complete=True)


def _matches(document: JsonObject, id_: str, words: Sequence[str]) -> bool:
    text = f"{id_} {_text(document)}".casefold()
    left = [word for word in words if word not in text]
    # Of a path, or of a path with its value, the text has only the parts.
    if not all(any(mark in word for mark in _PATH_MARKS) for word in left):
        return False
    paths = [one.casefold() for one in _field_texts(_shown(document), "")] if left else []
    return all(any(word in one for one in paths) for word in left)


def _shown(document: JsonObject) -> JsonObject:
    """What is searched: what the author wrote, and the status."""
    return {name: value for name, value in document.items() if name != "apiVersion"}


def _text(document: JsonObject) -> str:
    return orjson.dumps(_shown(document), default=str, option=orjson.OPT_NON_STR_KEYS).decode()


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
