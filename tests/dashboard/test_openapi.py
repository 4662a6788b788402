"""The OpenAPI document: made from the routes, committed as it is made, and true of real answers."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from setpoint.dashboard.api.openapi import openapi_document
from setpoint.dashboard.api.routes import ROUTES
from setpoint.dashboard.server import Dashboard, DashboardOptions
from tests.dashboard.pages import WRITE, dashboard_on
from tests.dashboard.schemas import problems
from tests.library.worlds import bucket, database, until, world

COMMITTED = Path(__file__).parents[2] / "docs" / "dashboard-api.json"
BUCKET = "StorageBucket.storage.cnrm.cloud.google.com/default/logs"
DOCUMENT = openapi_document()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_the_committed_document_is_the_one_that_the_code_makes() -> None:
    made = f"{json.dumps(DOCUMENT, indent=2)}\n"

    assert COMMITTED.read_text(encoding="utf-8") == made, "python -m tests.dashboard.write_openapi writes it anew"


def test_every_route_has_a_handler_and_every_handler_a_route() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, dashboard_on(session) as page:
            handlers = Dashboard(page.backend, None, DashboardOptions()).handlers()  # type: ignore[arg-type]

            assert sorted(handlers) == sorted(one.handler for one in ROUTES)

    run(main())


@pytest.mark.parametrize("route", [one for one in ROUTES if one.handler != "stream"], ids=lambda one: one.handler)
def test_real_answers_are_as_the_document_says(route: Any) -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket(), database("app", "db"), wait=False)
            here.cloud.edit("/b/logs", {"storageClass": "NEARLINE"})
            await session.reconcile("StorageBucket/logs")
            async with dashboard_on(session, upgrade_report=b"{}") as page:
                if route.handler == "plan":
                    await page.post("/plan")
                    await until(lambda: not page.backend.plans.is_running)
                path = route.path.replace("{id}", BUCKET).replace("{action}", "pause")
                body = {"token": page.tokens[-1]} if route.handler == "login" else {}
                sent = body if route.method == "POST" else None
                found = await page.send(route.method, f"/api/v1{path}", sent, WRITE)
                operation = DOCUMENT["paths"][f"/api/v1{route.path}"][route.method.lower()]

                assert str(found.status) in operation["responses"]
                content = operation["responses"][str(found.status)]["content"]
                assert list(problems(found.body, content["application/json"]["schema"], DOCUMENT)) == []

    run(main())


def test_errors_are_as_the_document_says() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, dashboard_on(session, is_signed_in=False) as page:
            schema = {"$ref": "#/components/schemas/ErrorAnswer"}
            for path in ("/session", "/nothing", "/resources/x"):
                found = await page.send("GET", f"/api/v1{path}")

                assert list(problems(found.body, schema, DOCUMENT)) == []

    run(main())
