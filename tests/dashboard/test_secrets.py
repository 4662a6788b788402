"""Secret values never reach the page: of any kind, in any answer, nor as the answer to a search for them."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint
from setpoint.app import StoreAccess, open_engine
from setpoint.core.values.json_types import JsonObject
from setpoint.localcloud.faults import FailRequest
from tests.dashboard.pages import Page, dashboard_on
from tests.library.worlds import PROJECT, world
from tests.security.secret_places import PLACES, secret_values, settings_of, traces, user
from tests.stores.scratch import scratch_folder

PASSWORD: Final = "correct-horse-battery-staple"
INSTANCE: Final[JsonObject] = {
    "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
    "kind": "SQLInstance",
    "metadata": {"name": "main", "annotations": dict(PROJECT)},
    "spec": {
        "databaseVersion": "MYSQL_8_0",
        "region": "europe-west1",
        "settings": {"tier": "db-f1-micro"},
        "rootPassword": {"value": PASSWORD},
    },
}


def _named(place: str, text: str) -> JsonObject:
    document = PLACES[place](text)
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    return {**document, "metadata": {**metadata, "name": f"r-{sorted(PLACES).index(place)}"}}


async def everything(page: Page, *, with_live: bool) -> str:
    """Every answer about every resource."""
    rows = await page.get("/resources?limit=5000")
    answers: list[Any] = [rows, await page.get("/graph"), await page.get("/summary"), await page.get("/plan")]
    for row in rows["resources"]:
        parts = ("", "/timeline", *(("/fields",) if with_live else ()))
        answers += [await page.get(f"/resources/{row['id']}{part}") for part in parts]
    return json.dumps(answers, ensure_ascii=False)


@pytest.mark.laws
@settings(max_examples=2)
@given(st.fixed_dictionaries(dict.fromkeys(sorted(PLACES), secret_values)))
def test_no_answer_has_a_secret_value_of_any_kind(texts: dict[str, str]) -> None:
    async def main(folder: Path) -> None:
        async with open_engine(settings_of(folder), StoreAccess.WRITE) as engine:
            for place, text in texts.items():
                await engine.store.apply(_named(place, text))
        store = f"sqlite:///{folder}/state.db"
        async with setpoint.open(store=store, environment={}) as session, dashboard_on(session) as page:
            shown = (await everything(page, with_live=False)).encode()

            assert {place: found for place, text in texts.items() if (found := traces(text, shown))} == {}
            for text in list(texts.values())[:5]:
                assert (await page.get(f"/search?q={quote(text.replace(' ', '')[:60])}"))["ids"] == []

    with scratch_folder() as folder:
        asyncio.run(main(folder))


def test_a_password_is_in_no_answer_about_a_live_object_whether_or_not_it_can_be_read() -> None:
    async def main() -> None:
        manifest = user(PASSWORD, annotations=dict(PROJECT))
        manifest["spec"] = {**manifest["spec"], "instanceRef": {"name": "main"}}
        async with world() as here, here.open() as session:
            await session.apply(INSTANCE, manifest)
            async with dashboard_on(session) as page:
                await page.post("/plan")
                while page.backend.plans.is_running:
                    await asyncio.sleep(0.01)
                shown = await everything(page, with_live=True)
                here.cloud.inject(FailRequest(403, times=50))
                broken = await everything(page, with_live=True)

                assert "(redacted)" in shown
                assert (traces(PASSWORD, shown.encode()), traces(PASSWORD, broken.encode())) == ([], [])
                assert (await page.get(f"/search?q={PASSWORD[:8]}"))["ids"] == []

    asyncio.run(main())
