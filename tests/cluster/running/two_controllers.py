"""Two controllers of a cluster that know each other, and what the page of each shows to a user."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import aiohttp

from setpoint.dashboard.backend import Backend
from tests.dashboard.pages import Page
from tests.dashboard.test_stream import Events

# So many that both processes hold some: their identities are random, and of 8 shards one of 128 runs gave all to one.
SHARDS: Final = 32


def bucket_id(namespace: str, name: str) -> str:
    return f"StorageBucket.storage.cnrm.cloud.google.com/{namespace}/{name}"


@asynccontextmanager
async def page_of(address: str, token: str) -> AsyncIterator[Page]:
    """The page of another process, for the user with that token."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as browser:
        # Nothing of the backend is used: it is in another process.
        yield Page(address, cast("Backend", None), browser)


async def planned(page: Page) -> Any:
    """The plan of all resources that a process makes, once it is done."""
    while (found := await page.get("/plan"))["isRunning"]:
        await asyncio.sleep(0.01)
    return found


@dataclass(frozen=True, slots=True)
class TwoControllers:
    """Two controllers that know each other, with the pages of a user who may list a bucket and leases, and another."""

    namespace: str
    addresses: tuple[str, ...]
    tokens: dict[str, str]

    @property
    def own(self) -> str:
        """The bucket."""
        return bucket_id(self.namespace, "watched")

    def page(self, address: str, user: str) -> AbstractAsyncContextManager[Page]:
        """The page of one of them, for a user."""
        return page_of(address, self.tokens[user])


async def shows_the_resource(page: Page, two: TwoControllers) -> None:
    rows, details = await page.get("/resources"), await page.get(f"/resources/{two.own}")
    timeline = await page.get(f"/resources/{two.own}/timeline")
    fields = await page.get(f"/resources/{two.own}/fields")

    assert [one["id"] for one in rows["resources"] if one["namespace"] == two.namespace] == [two.own]
    # Whichever process took the step, and takes the next one.
    assert details["nextStep"]["time"] is not None
    assert [one["decision"] for one in timeline["entries"] if one["type"] == "step"] == ["create"]
    (write,) = [one for one in timeline["entries"] if one["type"] == "write"]
    assert [one["method"] for one in write["requests"]] == ["POST"]
    assert (fields["isFresh"], fields["trouble"]) == (True, "")


async def shows_the_next_step_in_the_list(page: Page, two: TwoControllers) -> None:
    """Whichever process takes it: while a page is open, the others are asked."""
    stream = Events(page)
    try:
        while (await _own_row(page, two))["nextStep"] is None:
            await asyncio.sleep(0.1)
        listed = await page.get("/next-steps")

        assert listed["times"][two.own] == (await _own_row(page, two))["nextStep"]
    finally:
        stream.task.cancel()


async def _own_row(page: Page, two: TwoControllers) -> Any:
    rows = await page.get("/resources")
    return next(one for one in rows["resources"] if one["id"] == two.own)


async def shows_the_processes(page: Page) -> None:
    summary = await page.get("/summary")
    # What the other one does is asked for now and then.
    while sum(len(one["shards"]) for one in summary["processes"] if one["state"]) < SHARDS:
        await asyncio.sleep(0.1)
        summary = await page.get("/summary")

    assert [one["identity"].rpartition("-")[0] for one in summary["processes"]] == ["first", "second"]
    assert [one["state"]["phase"] for one in summary["processes"]] == ["running", "running"]
    assert summary["process"]["phase"] == "running"
    assert (await page.get("/process"))["identity"] in [one["identity"] for one in summary["processes"]]


async def makes_a_plan(page: Page, two: TwoControllers) -> None:
    started = await page.post("/plan")
    plan = await planned(page)

    assert (started.status, plan["error"]) == (202, None)
    (change,) = [one for one in plan["resources"] if one["id"] == two.own]
    paths = [one["path"] for one in change["fields"]]
    assert (change["action"], change["error"], paths) == ("update", None, ["spec.website.mainPageSuffix"])
    assert (plan["total"], plan["counts"]["update"]) == (len(plan["resources"]), 1)


async def shows_nothing(page: Page, two: TwoControllers) -> None:
    rows, summary, plan = await page.get("/resources"), await page.get("/summary"), await page.get("/plan")
    process, started = await page.send("GET", "/api/v1/process"), await page.post("/plan")
    cancelled = await page.post("/plan/cancel")

    assert [one for one in rows["resources"] if one["namespace"] == two.namespace] == []
    assert (summary["process"], summary["processes"]) == (None, [])
    assert two.namespace not in [one["namespace"] for one in summary["byNamespace"]]
    assert two.own not in [one["id"] for one in summary["attention"]]
    assert summary["total"] == rows["total"] == sum(one["total"] for one in summary["byKind"])
    assert (process.status, process.code) == (403, "processesHidden")
    assert (plan["resources"], plan["total"], plan["done"], plan["counts"]["update"]) == ([], 0, 0, 0)
    assert (started.status, started.code) == (403, "nothingToPlan")
    assert (cancelled.status, cancelled.body["resources"]) == (200, [])
    for part in ("", "/fields", "/timeline", "/timeline?alone=1", "?alone=1"):
        assert (await page.send("GET", f"/api/v1/resources/{two.own}{part}")).status == 404
    assert (await page.get("/search?q=watched"))["ids"] == []
    assert two.own not in (await page.get("/next-steps"))["times"]
    assert (await page.get(f"/graph?focus={two.own}"))["nodes"] == []
