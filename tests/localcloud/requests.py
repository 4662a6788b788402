"""Requests to the local cloud, and what the tests read from the responses."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.routing import ServiceResponse
from setpoint.localcloud.schema import JsonBody, merge_patch

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
OPERATION_SECONDS: Final = 10.0
PROJECT: Final = "/sql/v1beta4/projects/acme"
INSTANCES: Final = f"{PROJECT}/instances"
DB: Final = f"{INSTANCES}/db"
BUCKETS: Final = "/storage/v1/b"
BUCKET: Final = f"{BUCKETS}/stuff"

MYSQL: Final[JsonBody] = {
    "name": "db",
    "databaseVersion": "MYSQL_8_0",
    "region": "us-central1",
    "settings": {"tier": "db-custom-1-3840", "edition": "ENTERPRISE"},
}
POSTGRES: Final[JsonBody] = {**MYSQL, "databaseVersion": "POSTGRES_15"}
LOGGED: Final[JsonBody] = {"settings": {"backupConfiguration": {"enabled": True, "binaryLogEnabled": True}}}


def held_cloud(**options: Any) -> Cloud:
    """A local cloud with a held clock."""
    return Cloud(clock=CloudClock(START), operation_seconds=OPERATION_SECONDS, **options)


def ok(answer: ServiceResponse) -> JsonBody:
    """The body of a successful response."""
    assert answer.status == 200, answer
    assert answer.body is not None
    return answer.body


def gone(answer: ServiceResponse) -> JsonBody:
    """The body of a deletion that succeeded: some services return none."""
    return {} if answer.status == 204 else ok(answer)


def refused(answer: ServiceResponse) -> tuple[int, str]:
    """The status and the reason of an error response."""
    assert answer.body is not None
    error = answer.body["error"]
    assert error["code"] == answer.status
    return answer.status, error["errors"][0]["reason"]


def error_message(answer: ServiceResponse) -> str:
    """The message of an error response."""
    assert answer.body is not None
    return str(answer.body["error"]["message"])


def get(cloud: Cloud, path: str) -> JsonBody:
    """The body of a GET."""
    return ok(cloud.call("GET", path))


def done(cloud: Cloud, method: str, path: str, body: Mapping[str, Any] | None = None) -> JsonBody:
    """Sends a request, and returns its operation once that is done."""
    operation = ok(cloud.call(method, path, None if body is None else dict(body)))
    cloud.advance(OPERATION_SECONDS)
    return get(cloud, f"{PROJECT}/operations/{operation['name']}")


def create(cloud: Cloud, body: JsonBody = MYSQL, change: JsonBody | None = None) -> JsonBody:
    """Creates an instance; the body of its GET once it runs."""
    wanted = merge_patch(body, change or {})
    assert "error" not in done(cloud, "POST", INSTANCES, wanted)
    return get(cloud, f"{INSTANCES}/{wanted['name']}")


def make_bucket(cloud: Cloud, body: JsonBody | None = None) -> JsonBody:
    """Creates a bucket; the body of its GET."""
    ok(cloud.call("POST", f"{BUCKETS}?project=acme", {"name": "stuff", **(body or {})}))
    return get(cloud, BUCKET)
