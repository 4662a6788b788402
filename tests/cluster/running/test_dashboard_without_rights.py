"""`setpoint dashboard` on a cluster whose user is known there, and may read nothing."""

import asyncio

import setpoint
from tests.cluster.access import Access
from tests.dashboard.pages import dashboard_on


def test_the_page_says_which_right_its_user_lacks(api_server: Access) -> None:
    environment = {"KUBECONFIG": str(api_server.kubeconfig_of("bob"))}

    async def main() -> None:
        async with setpoint.open("kubernetes", environment=environment) as session, dashboard_on(session) as page:
            session_info = await page.send("GET", "/api/v1/session")
            refused = [await page.send("GET", f"/api/v1{path}") for path in ("/resources", "/summary", "/graph")]
            started = await page.post("/plan")

            assert session_info.status == 200
            for one in (*refused, started):
                assert one.status == 503
                assert "Give this user a role with the verb list on" in one.body["error"]["message"]

    asyncio.run(main())
