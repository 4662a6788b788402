"""The local cloud over HTTP, and its control API."""

import asyncio
from collections.abc import Callable

import pytest
from aiohttp import ClientConnectionError, ClientSession

from setpoint.errors import UserError
from setpoint.localcloud.faults import AddLatency, DropConnection, FailRequest, LimitRequests
from setpoint.localcloud.server import LocalCloud, announcement
from tests.localcloud.conftest import Scenario
from tests.localcloud.requests import BUCKET, BUCKETS, DB, INSTANCES, MYSQL, PROJECT

Run = Callable[[Scenario], None]


def test_an_instance_is_created_changed_and_deleted_over_http(over_http: Run) -> None:
    async def scenario(cloud: LocalCloud, client: ClientSession) -> None:
        async with client.post(f"{INSTANCES}?alt=json&prettyPrint=false", json=MYSQL) as answer:
            operation = await answer.json()
        cloud.advance(10)
        async with client.get(f"{PROJECT}/operations/{operation['name']}") as answer:
            assert (await answer.json())["status"] == "DONE"
        async with client.delete(f"{DB}/users", params={"host": "%", "name": "root"}) as answer:
            assert (answer.status, (await answer.json())["operationType"]) == (200, "DELETE_USER")
        async with client.delete(DB) as answer:
            assert answer.status == 200
        cloud.advance(10)
        async with client.get(DB) as answer:
            assert answer.status == 404

    over_http(scenario)


def test_every_response_says_that_this_is_not_google(over_http: Run) -> None:
    async def scenario(_: LocalCloud, client: ClientSession) -> None:
        async with client.get(INSTANCES) as answer:
            assert answer.headers["Server"] == "setpoint-local-cloud (not Google)"
            assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"

    over_http(scenario)


def test_a_bucket_is_made_filled_and_deleted_over_http(over_http: Run) -> None:
    async def scenario(_: LocalCloud, client: ClientSession) -> None:
        async with client.post(f"{BUCKETS}?project=acme", json={"name": "stuff"}) as answer:
            assert answer.status == 200
        upload = {"uploadType": "media", "name": "a/b.txt"}
        async with client.post(f"/upload{BUCKET}/o", params=upload, data=b"hello") as answer:
            assert (await answer.json())["size"] == "5"
        async with client.delete(BUCKET) as answer:
            assert answer.status == 409
        async with client.delete(f"{BUCKET}/o/a%2Fb.txt") as answer:
            assert answer.status == 204
        async with client.delete(BUCKET) as answer:
            assert (answer.status, await answer.read()) == (204, b"")

    over_http(scenario)


@pytest.mark.parametrize("body", [b"{", b"[]", b"", b'"text"'])
def test_a_body_that_is_no_json_object_is_refused(over_http: Run, body: bytes) -> None:
    async def scenario(_: LocalCloud, client: ClientSession) -> None:
        async with client.post(INSTANCES, data=body) as answer:
            assert answer.status == 400
            assert (await answer.json())["error"]["message"].startswith("Invalid JSON payload received.")

    over_http(scenario)


def test_a_method_that_does_not_exist_is_named(over_http: Run) -> None:
    async def scenario(_: LocalCloud, client: ClientSession) -> None:
        async with client.put("/compute/v1/projects/acme") as answer:
            assert answer.status == 404
            assert "has no method PUT /compute/v1/projects/acme" in (await answer.json())["error"]["message"]

    over_http(scenario)


def test_a_dropped_connection_is_a_connection_error_and_the_next_request_passes(over_http: Run) -> None:
    async def scenario(cloud: LocalCloud, client: ClientSession) -> None:
        cloud.inject(DropConnection(method="POST"))
        with pytest.raises(ClientConnectionError):
            await client.post(INSTANCES, json=MYSQL)
        async with client.get(DB) as answer:
            assert answer.status == 404

    over_http(scenario)


def test_retry_after_comes_with_faults_and_quotas(over_http: Run) -> None:
    async def scenario(cloud: LocalCloud, client: ClientSession) -> None:
        cloud.inject(FailRequest(status=503, retry_after=3))
        async with client.get(DB) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "3")
        cloud.inject(LimitRequests(requests_per_second=0))
        async with client.get(DB) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "1")

    over_http(scenario)


def test_latency_is_measured_by_the_clock_of_the_cloud(over_http: Run) -> None:
    async def scenario(cloud: LocalCloud, client: ClientSession) -> None:
        cloud.inject(AddLatency(60.0, path="/instances"))
        slow = asyncio.create_task(client.get(INSTANCES))
        # Once a request without latency is answered, the slow one has arrived, too.
        async with client.get(f"{BUCKETS}?project=acme"):
            assert not slow.done()
        async with client.post("/_local/clock", json={"advance": 60}):
            pass
        while not slow.done():
            cloud.advance(60)
            async with client.get("/_local"):
                pass
        assert slow.result().status == 200
        slow.result().release()

    over_http(scenario)


def test_the_control_api_offers_what_the_python_object_does(over_http: Run) -> None:
    async def scenario(cloud: LocalCloud, client: ClientSession) -> None:
        await client.post(INSTANCES, json={**MYSQL, "rootPassword": "hunter2"})
        async with client.post("/_local/clock", json={"advance": 10, "held": True}) as answer:
            assert await answer.json() == {"held": True, "now": "2026-01-01T00:00:10.000Z"}
        async with client.post("/_local/edit", json={"path": DB, "patch": {"settings": {"tier": "x"}}}) as answer:
            assert answer.status == 204
        question = {"project": "acme", "instance": "db", "name": "root", "password": "hunter2"}
        async with client.post("/_local/password", json=question) as answer:
            assert await answer.json() == {"matches": True}
        async with client.post("/_local/faults", json={"fault": "fail", "status": 500, "times": 2}) as answer:
            assert (await answer.json())["faults"][0]["times"] == 2
        async with client.get(DB) as answer:
            assert answer.status == 500
        async with client.get("/_local") as answer:
            overview = await answer.json()
        assert (overview["faults"][0]["times"], overview["counts"]["byStatus"]) == (1, {"200": 1, "500": 1})
        assert "not Google" in overview["about"]
        await client.delete("/_local/faults")
        async with client.get(DB) as answer:
            assert (await answer.json())["settings"]["tier"] == "x"
        assert cloud.faults.active == ()

    over_http(scenario)


def test_a_fault_may_come_after_the_request_took_effect_over_the_control_api(over_http: Run) -> None:
    async def scenario(_: LocalCloud, client: ClientSession) -> None:
        fault = {"fault": "fail", "status": 500, "method": "POST", "moment": "after"}
        async with client.post("/_local/faults", json=fault) as answer:
            assert (await answer.json())["faults"] == [{**fault, "path": "", "times": 1, "retry_after": None}]
        async with client.post(INSTANCES, json=MYSQL) as answer:
            assert answer.status == 500
        async with client.get(DB) as answer:
            assert answer.status == 200

    over_http(scenario)


def test_recorded_requests_are_read_and_cleared_over_the_control_api(over_http: Run) -> None:
    async def scenario(_: LocalCloud, client: ClientSession) -> None:
        await client.post(f"{DB}/users", json={"name": "app", "password": "hunter2"})
        async with client.get("/_local/calls") as answer:
            recorded = await answer.json()
        await client.delete("/_local/calls")
        async with client.get("/_local/calls") as answer:
            after = await answer.json()

        assert recorded["calls"] == [
            {
                "method": "POST",
                "path": f"{DB}/users",
                "query": {},
                "body": {"name": "app", "password": "[redacted]"},
                "status": 404,
                "at": "2026-01-01T00:00:00.000Z",
            }
        ]
        assert (recorded["counts"]["writes"], after["calls"], after["counts"]["total"]) == (1, [], 0)

    over_http(scenario)


@pytest.mark.parametrize(
    "order",
    [
        {"fault": "flood"},
        {"fault": "fail"},
        {"fault": "fail", "status": 500, "tmes": 2},
        {"fault": "fail", "status": 500, "path": "("},
        ["fail"],
    ],
)
def test_an_invalid_fault_is_refused_over_the_control_api(over_http: Run, order: object) -> None:
    async def scenario(cloud: LocalCloud, client: ClientSession) -> None:
        async with client.post("/_local/faults", json=order) as answer:
            assert answer.status == 400
        assert cloud.faults.active == ()

    over_http(scenario)


def test_the_state_can_be_reset_over_the_control_api(over_http: Run) -> None:
    async def scenario(_: LocalCloud, client: ClientSession) -> None:
        await client.post(INSTANCES, json=MYSQL)
        async with client.delete("/_local/state") as answer:
            assert answer.status == 204
        async with client.get(DB) as answer:
            assert answer.status == 404

    over_http(scenario)


def test_a_port_that_is_taken_is_an_error_that_says_so(over_http: Run) -> None:
    async def scenario(cloud: LocalCloud, _: ClientSession) -> None:
        port = int(cloud.url.rpartition(":")[2])
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{port}"):
            await LocalCloud().start(port=port)

    over_http(scenario)


def test_the_announcement_is_a_script_with_all_variables() -> None:
    assert announcement("http://127.0.0.1:8123") == (
        "export STORAGE_EMULATOR_HOST=http://127.0.0.1:8123\n"
        "export CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL=http://127.0.0.1:8123/\n"
        "export SETPOINT_GOOGLE_ENDPOINT=http://127.0.0.1:8123\n"
        "export SETPOINT_GCP_AUTH=anonymous\n"
        "# setpoint local cloud, for demos and tests, not Google, at http://127.0.0.1:8123: "
        "paste these lines into another terminal.\n"
    )
