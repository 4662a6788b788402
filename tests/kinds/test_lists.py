"""Kinds with a list: an item of the list equals the observed object, or is unknown."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from setpoint.engine.capabilities import ListScope, SupportsList
from setpoint.engine.kind import AnyKind, Location, Present, observe_decoded
from setpoint.errors import RemoteError, RemoteRefused, RemoteUnavailable
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.localcloud.faults import DropConnection, FailRequest
from tests.kinds.instances import MYSQL, POSTGRES, in_instance_harness, instance, with_settings
from tests.kinds.kind_harness import PROJECT, KindHarness, bucket, in_kind_harness

SCOPE = ListScope(PROJECT)
BUCKETS = (
    bucket({"location": "EU"}, "plain-bucket"),
    bucket(
        {
            "versioning": {"enabled": True},
            "softDeletePolicy": {"retentionDurationSeconds": 0},
            "lifecycleRule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}],
        },
        "full-bucket",
        labels={"team": "orders"},
    ),
)
INSTANCES = (
    instance(MYSQL, "mysql-instance"),
    instance(with_settings(POSTGRES, databaseFlags=[{"name": "log_checkpoints", "value": "on"}]), "postgres-instance"),
)


async def _everything(kind: SupportsList) -> list[bytes]:
    return [item async for page in kind.pages(SCOPE) for item in page]


async def _states(engine: KindHarness, kind: Any, manifests: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each object from the list, and observed."""
    for manifest in manifests:
        await engine.settle(manifest)
    found = []
    for item in await _everything(kind):
        location = kind.location_of(item, SCOPE)
        observed = await observe_decoded(location, kind)
        listed = kind.read_item(item, location)
        assert isinstance(observed, Present)
        assert isinstance(listed, Present)
        found.append(
            ((listed.live, listed.outputs, listed.version), (observed.live, observed.outputs, observed.version))
        )
    return found


def test_a_listed_bucket_equals_the_observed_bucket() -> None:
    states = in_kind_harness(lambda engine: _states(engine, StorageBucketKind(engine.google), BUCKETS))

    assert len(states) == 2
    assert [listed for listed, _ in states] == [observed for _, observed in states]


def test_a_listed_instance_equals_the_observed_instance() -> None:
    states = in_instance_harness(lambda engine: _states(engine, SqlInstanceKind(engine.google), INSTANCES))

    assert len(states) == 2
    assert [listed for listed, _ in states] == [observed for _, observed in states]


def test_a_listed_bucket_with_an_ip_filter_is_unknown() -> None:
    source = {"allowedIpCidrRanges": ["203.0.113.0/24"]}

    async def scenario(engine: KindHarness) -> object:
        kind = StorageBucketKind(engine.google)
        await engine.settle(bucket({"ipFilter": {"mode": "Enabled", "publicNetworkSource": source}}))
        (item,) = await _everything(kind)
        return kind.read_item(item, kind.location_of(item, SCOPE))

    assert in_kind_harness(scenario) is None


def test_every_page_of_a_list_is_read() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[int], int, list[dict[str, str]]]:
        for number in range(1_001):
            engine.cloud.call("POST", f"/storage/v1/b?project={PROJECT}", {"name": f"bucket-{number:04}"})
        engine.cloud.journal.clear()
        kind = StorageBucketKind(engine.google)
        pages = [page async for page in kind.pages(SCOPE)]
        locations = {kind.location_of(item, SCOPE) for page in pages for item in page}
        return [len(page) for page in pages], len(locations), [entry.query for entry in engine.cloud.journal.entries]

    sizes, count, queries = in_kind_harness(scenario)

    assert (sizes, count) == ([1_000, 1], 1_001)
    assert [query["maxResults"] for query in queries] == ["1000", "1000"]
    assert [query.get("pageToken") for query in queries] == [None, "bucket-0999"]


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_list_without_permission_is_refused(status: int) -> None:
    assert isinstance(_error(FailRequest(status)), RemoteRefused)


@pytest.mark.parametrize("fault", [FailRequest(429), FailRequest(500), FailRequest(503), DropConnection(times=9)])
def test_a_failed_list_request_is_unavailable(fault: FailRequest | DropConnection) -> None:
    assert isinstance(_error(fault), RemoteUnavailable)


def _error(fault: FailRequest | DropConnection) -> RemoteError:
    async def scenario(engine: KindHarness) -> RemoteError:
        engine.cloud.inject(fault)
        with pytest.raises(RemoteError) as caught:
            await _everything(StorageBucketKind(engine.google))
        return caught.value

    return in_kind_harness(scenario)


@pytest.mark.parametrize("make", [StorageBucketKind, SqlInstanceKind])
def test_a_location_of_another_kind_has_no_list_scope(make: Callable[..., Any]) -> None:
    async def scenario(engine: KindHarness) -> list[ListScope | None]:
        kind = make(engine.google)
        return [kind.list_scope_of(Location(place)) for place in ("", "nonsense", "projects/p/others/o")]

    assert in_kind_harness(scenario) == [None, None, None]


def test_buckets_and_instances_can_be_listed() -> None:
    async def scenario(engine: KindHarness) -> list[str]:
        kinds: Sequence[AnyKind] = (
            StorageBucketKind(engine.google),
            SqlInstanceKind(engine.google),
            SqlDatabaseKind(engine.google),
            SqlUserKind(engine.google),
        )
        return [kind.name for kind in kinds if isinstance(kind, SupportsList)]

    assert in_kind_harness(scenario) == ["StorageBucket", "SQLInstance"]
