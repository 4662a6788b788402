"""What a search finds: every part of a field, in the newest state of every resource, and nothing that is secret."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from setpoint.core.values.json_types import Json
from setpoint.dashboard.access.viewer import LocalViewer
from setpoint.dashboard.views.fleet import FleetRows, FleetWatch
from setpoint.dashboard.views.search import FieldSearch, SearchTexts, SearchWord, matches, text_of
from tests.dashboard.pages import dashboard_on
from tests.dashboard.watched_store import watched
from tests.library.worlds import bucket, until, world

BUCKET = "StorageBucket.storage.cnrm.cloud.google.com/default/{}"
# Marks of paths and of JSON, capitals, and what is longer in lower case.
TEXTS = st.text('aB1.=[]"\\{}:,ßİ\n', max_size=6)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), TEXTS),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(TEXTS, below, max_size=3)),
    max_leaves=8,
)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def paths(value: Json, at: str = "") -> Iterator[str]:
    """Each field as `path=value`, as the documentation has it."""
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from paths(below, f"{at}.{name}" if at else name)
    elif isinstance(value, list) and value:
        for position, below in enumerate(value):
            yield from paths(below, f"{at}[{position}]")
    else:
        yield f"{at}={value if isinstance(value, str) else orjson.dumps(value).decode()}"


@pytest.mark.laws
@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3), st.data())
def test_every_part_of_a_path_with_its_value_is_found(spec: dict[str, Json], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(list(paths({"spec": spec}))))
    start = data.draw(st.integers(0, len(path)))
    word = path[start : data.draw(st.integers(start, len(path)))].casefold()
    # A place in a list is part of a path, and nothing to look for by itself: every list has a first entry.
    assume(not (word.isascii() and word.isdigit()) or word in orjson.dumps(spec).decode())

    assert matches(text_of({"apiVersion": "v1", "spec": spec}, "Kind/ns/name"), [SearchWord.of(word)])


@pytest.mark.laws
@given(st.dictionaries(TEXTS, VALUES, max_size=3), TEXTS)
def test_nothing_is_found_that_is_in_no_field_and_not_in_the_id(spec: dict[str, Json], word: str) -> None:
    document: dict[str, Json] = {"spec": spec}
    folded = word.casefold()
    # A word that is no path may also be in the JSON, between two fields.
    there = [*paths(document), "kind/ns/name", orjson.dumps(document).decode()]
    is_there = any(folded in one.casefold() for one in there)

    assert is_there or not matches(text_of(document, "Kind/ns/name"), [SearchWord.of(folded)])


def test_a_search_finds_the_newest_state_and_reads_the_store_once() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, session.reading() as engine:
            await session.apply(bucket("first", storageClass="NEARLINE"), bucket("second"), wait=False)
            engine, store = watched(engine)
            texts, rows = SearchTexts(engine), FleetRows()
            search, fleet = FieldSearch(texts, rows), FleetWatch(engine, rows, listener=texts)
            async with fleet.running():
                await fleet.loaded()
                assert (len(texts), store.listed) == (0, 1)
                before = (await search.find("nearline", LocalViewer())).ids
                revision = rows.number
                await session.apply(bucket("second", storageClass="NEARLINE"), wait=False)
                await session.apply(bucket("third", storageClass="COLDLINE"), wait=False)
                await session.delete("StorageBucket/first", wait=False)
                await until(lambda: rows.number >= revision + 3)
                found = {word: (await search.find(word, LocalViewer())).ids for word in ("nearline", "coldline")}

                # Once for the rows, and once for the texts.
                assert store.listed == 2
                assert before == (BUCKET.format("first"),)
                assert BUCKET.format("second") in found["nearline"]
                assert found["coldline"] == (BUCKET.format("third"),)

    run(main())


def test_what_does_not_fit_is_not_searched_and_the_answer_says_so() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket("first", storageClass="NEARLINE"), wait=False)
            async with dashboard_on(session) as page:
                page.backend.search.texts.most = 10

                assert await page.get("/search?q=nearline") == {"ids": [], "isComplete": False}

    run(main())


def test_texts_that_are_not_searched_for_long_are_dropped_with_the_next_change() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket("first", storageClass="NEARLINE"), wait=False)
            async with session.reading() as engine:
                texts = await SearchTexts(engine, kept_seconds=-1.0).filled()
                (page,) = [one async for one in engine.store.pages()]
                assert len(texts) == 1
                texts.put(page.resources[0])

                assert len(texts) == 0
                assert len(await texts.filled()) == 1

    run(main())
