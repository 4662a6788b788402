"""Requests that are refused: without a session, by another host or origin, with a used token, for other files."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.dashboard.access.request_checks import CONTENT_SECURITY_POLICY
from setpoint.dashboard.access.sessions import SESSION_SECONDS, Sessions
from setpoint.dashboard.access.viewer import LocalViewer
from setpoint.dashboard.api.routes import ROUTES
from setpoint.dashboard.server import DashboardOptions
from setpoint.dashboard.static_files import read_static_files
from setpoint.dashboard.views.rows import id_of, ref_of
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.limited_server import ServerLimits
from setpoint.testing.clock import VirtualClock
from tests.dashboard.pages import WRITE, Page, dashboard_on
from tests.library.worlds import bucket, world

BUCKET = "StorageBucket.storage.cnrm.cloud.google.com/default/logs"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@asynccontextmanager
async def opened(*, is_signed_in: bool = True) -> AsyncIterator[Page]:
    async with world() as here, here.open() as session:
        await session.apply(bucket())
        async with dashboard_on(session, is_signed_in=is_signed_in) as page:
            yield page


def test_a_used_token_opens_no_second_session() -> None:
    async def main() -> None:
        async with opened() as page:
            used = await page.post("/login", {"token": page.tokens[0]})
            newest = await page.post("/login", {"token": page.tokens[1]})

            assert (used.status, used.code) == (401, "signInRefused")
            assert newest.status == 200
            assert len(page.tokens) == 3

    run(main())


@pytest.mark.parametrize("is_signed_in", [False, True])
def test_a_page_can_ask_whether_it_has_a_session(is_signed_in: bool) -> None:
    async def main() -> None:
        async with opened(is_signed_in=is_signed_in) as page:
            found = await page.get("/sign-in")

            assert found == {"signIn": "url", "isSignedIn": is_signed_in}

    run(main())


@pytest.mark.parametrize("route", [one for one in ROUTES if one.needs_session], ids=lambda route: route.handler)
def test_without_a_session_nothing_is_told(route: Any) -> None:
    async def main() -> None:
        async with opened(is_signed_in=False) as page:
            path = route.path.replace("{id}", BUCKET).replace("{action}", "pause")
            body: object = {} if route.method == "POST" else None
            refused = await page.send(route.method, f"/api/v1{path}", body, WRITE)

            assert (refused.status, refused.code) == (401, "signedOut")
            assert "logs" not in refused.text

    run(main())


def test_a_session_ends_with_the_sign_out() -> None:
    async def main() -> None:
        async with opened() as page:
            cookie = next(iter(page.browser.cookie_jar))
            await page.post("/logout")
            with_old_cookie = await page.send(
                "GET", "/api/v1/session", headers={"Cookie": f"{cookie.key}={cookie.value}"}
            )

            assert with_old_cookie.status == 401

    run(main())


def test_sessions_end_by_themselves() -> None:
    clock = VirtualClock()
    sessions = Sessions(clock)
    cookie = sessions.open(LocalViewer())

    assert sessions.viewer_of(cookie) is not None
    clock.seconds += SESSION_SECONDS
    assert sessions.viewer_of(cookie) is None
    assert len(sessions) == 0


def test_the_cookie_is_for_this_server_and_no_script() -> None:
    async def main() -> None:
        async with opened(is_signed_in=False) as page:
            signed_in = await page.sign_in()

            cookie = signed_in.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            # Cookies do not tell ports apart: the name does.
            assert cookie.startswith(f"setpoint-session-{page.url.rpartition(':')[2]}=")

    run(main())


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "0.0.0.0", "[", "a b"])
def test_a_name_that_leads_here_by_dns_is_refused(host: str) -> None:
    async def main() -> None:
        async with opened() as page:
            refused = await page.send("GET", "/api/v1/session", headers={"Host": host})
            file = await page.send("GET", "/", headers={"Host": host})

            assert (refused.status, file.status) == (421, 421)

    run(main())


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/json"},
        {"X-Setpoint": "1", "Content-Type": "text/plain"},
        {"X-Setpoint": "1", "Content-Type": "application/x-www-form-urlencoded"},
        {**WRITE, "Origin": "http://evil.example"},
        {**WRITE, "Origin": "null"},
        {**WRITE, "Origin": "http://["},
        {**WRITE, "Sec-Fetch-Site": "cross-site"},
        {**WRITE, "Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_write_that_another_page_may_have_made_is_refused(headers: dict[str, str]) -> None:
    async def main() -> None:
        async with opened() as page:
            for path in (f"/resources/{BUCKET}/actions/pause", "/plan", "/login", "/logout"):
                refused = await page.send("POST", f"/api/v1{path}", {}, headers)

                assert refused.status in (403, 415)
            assert (await page.get("/resources"))["resources"][0]["state"] == "ready"

    run(main())


def test_a_page_of_another_origin_reads_nothing() -> None:
    async def main() -> None:
        async with opened() as page:
            refused = await page.send("GET", "/api/v1/resources", headers={"Sec-Fetch-Site": "cross-site"})

            assert (refused.status, refused.code) == (403, "otherOrigin")
            assert "Access-Control-Allow-Origin" not in refused.headers

    run(main())


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/..%2fserver.py",
        "/%2e%2e/server.py",
        "/assets/..%2f..%2fserver.py",
        "//etc/passwd",
        "/static/../../../../../../etc/passwd",
        "/index.html%00.js",
        "/.\\..\\server.py",
    ],
)
def test_only_the_files_of_the_page_are_served(path: str) -> None:
    async def main() -> None:
        async with opened() as page:
            _, _, port = page.url.rpartition(":")
            reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
            answer = (await reader.read()).decode()
            writer.close()

            assert answer.startswith(("HTTP/1.1 404", "HTTP/1.1 400"))

    run(main())


def test_the_start_page_needs_no_session_and_every_answer_has_the_policy() -> None:
    async def main() -> None:
        async with opened(is_signed_in=False) as page:
            for path in ("/", "/api/v1/session", "/nothing", "/api/v1/openapi.json"):
                found = await page.send("GET", path)

                assert found.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
                assert found.headers["X-Content-Type-Options"] == "nosniff"
                assert found.headers["Referrer-Policy"] == "no-referrer"
            assert (await page.send("GET", "/api/v1/session")).headers["Cache-Control"] == "no-store"
            start = await page.send("GET", "/")
            assert start.status == 200
            again = await page.send("GET", "/", headers={"If-None-Match": start.headers["ETag"]})
            assert (again.status, again.text) == (304, "")

    run(main())


def test_every_static_file_is_below_the_folder_of_the_page() -> None:
    assert all(path.startswith("/") and ".." not in path for path in read_static_files())


def test_clients_take_no_more_connections_than_the_limit() -> None:
    async def main() -> None:
        limits = ServerLimits(connections=4)
        options = DashboardOptions(limits=limits)
        async with world() as here, here.open() as session, dashboard_on(session, options=options) as page:
            port = int(page.url.rpartition(":")[2])
            opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(12)]
            answer = await page.send("GET", "/api/v1/session")
            # The oldest of those that sent nothing were closed for the newer ones.
            closed = [await reader.read() for reader, _ in opened[:8]]
            for _, writer in opened:
                writer.close()

            assert answer.status == 200
            assert closed == [b""] * 8

    run(main())


def test_a_large_body_and_a_body_that_is_no_json_are_refused() -> None:
    async def main() -> None:
        async with opened(is_signed_in=False) as page:
            large = await page.post("/login", {"token": "x" * 100_000})
            other = await page.post("/login", {"token": 7})

            assert (large.status, other.status) == (413, 400)

    run(main())


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=-1", "cursor=9999999999999999", "limit=１"])
def test_numbers_that_are_none_are_refused(query: str) -> None:
    async def main() -> None:
        async with opened() as page:
            assert (await page.send("GET", f"/api/v1/resources?{query}")).code == "badNumber"

    run(main())


def test_names_of_scripts_arrive_as_text_in_json() -> None:
    async def main() -> None:
        script = "</script><img src=x onerror=alert(1)>"
        hostile = bucket()
        hostile["metadata"]["annotations"]["note"] = script
        async with world() as here, here.open() as session:
            await session.apply(hostile)
            async with dashboard_on(session) as page:
                found = await page.send("GET", f"/api/v1/resources/{BUCKET}")
                missing = await page.send("GET", f"/api/v1/resources/{BUCKET}/<script>")

                assert found.headers["Content-Type"].startswith("application/json")
                assert found.body["manifest"]["metadata"]["annotations"]["note"] == script
                assert missing.headers["Content-Type"].startswith("application/json")
                assert "<script>" not in missing.text

    run(main())


_names = st.text(st.characters(codec="utf-8", exclude_characters="/."), min_size=1)


@given(
    st.builds(ResourceRef, st.sampled_from(["", "a.b", "setpoint.dev"]), _names, st.text(max_size=0) | _names, _names)
)
def test_an_id_names_its_resource(ref: ResourceRef) -> None:
    assert ref_of(id_of(ref)) == ref
