"""What a plan says of resources that wait for others of the same plan: what follows once those are there."""

import asyncio
from typing import Any

import setpoint
from setpoint.core.plan import Plan
from tests.library.fleets import fleet, manifest
from tests.library.worlds import World, world


def _open(world: World) -> setpoint.Session:
    return world.open(environment={**world.environment, "SETPOINT_GOOGLE_ENDPOINT": world.cloud.url})


def _fields(plan: Plan | None) -> dict[str, Any]:
    """What a plan writes, by field."""
    return {} if plan is None else {str(one.path): one.after for one in plan.changes}


def test_what_follows_is_what_an_apply_writes_then() -> None:
    asyncio.run(_plan_and_apply())


async def _plan_and_apply() -> None:
    async with world() as found, _open(found) as session:
        planned = await session.plan(fleet(1))
        writes, requests = found.writes, len(found.cloud.journal.entries)
        applied = await session.apply(fleet(1))

    waiting = {one.ref: one for one in planned if one.outcome.value == "waiting"}
    assert sorted(ref.kind for ref in waiting) == [
        "BigQueryTable",
        "ComputeBackendService",
        "ComputeFirewall",
        "ComputeRouter",
        "ComputeSubnetwork",
        "ComputeURLMap",
        "KMSCryptoKey",
        "PubSubSubscription",
        "SQLDatabase",
        "SQLUser",
    ]
    for ref, one in waiting.items():
        assert one.then is not None, ref
        assert [write.action.value for write in one.then.writes][:1] == ["create"]
        sent = {change.path: change.after for change in applied[ref].changes}
        assert {path: value for path, value in _fields(one.then).items() if path in sent} == sent, ref
    # Nothing was written, and of what is inside of an object that is not there, no service was asked.
    assert writes == 0
    asked = [entry.path for entry in found.cloud.journal.entries[:requests]]
    assert not [path for path in asked if "/instances/shop-1/" in path or "/datasets/shop-1/" in path]
    assert "sesame" not in str([one.to_data() for one in planned.results]) + str(planned.to_data())


def _job(account: str) -> dict[str, Any]:
    token = {"oidcToken": {"serviceAccountRef": {"name": account}}}
    spec = {"location": "europe-west1", "schedule": "0 * * * *", "httpTarget": {"uri": "https://example.com", **token}}
    return manifest("cloudscheduler", "CloudSchedulerJob", "hourly", spec)


def test_a_value_that_the_service_will_give_is_called_that() -> None:
    asyncio.run(_plan_unknown())


async def _plan_unknown() -> None:
    account = manifest("iam", "IAMServiceAccount", "runner", {"displayName": "Runner"})
    async with world() as found, _open(found) as session:
        planned = await session.plan(account, _job("runner"))
        missing = await session.plan(_job("nowhere"))

    job = planned["CloudSchedulerJob/hourly"]
    assert [one.outcome.value for one in planned] == ["create", "waiting"]
    at = "spec.httpTarget.oidcToken.serviceAccountRef"
    assert {path: value for path, value in _fields(job.then).items() if path.startswith(at)} == {
        f"{at}.external": "(known after apply)"
    }
    # What it refers to is in no manifest: it is not known what follows.
    assert (missing[0].outcome.value, missing[0].then) == ("waiting", None)
