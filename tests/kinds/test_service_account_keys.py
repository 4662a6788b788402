"""A key of a service account: one that can be used or none, whatever is killed, lost, edited or deleted."""

import asyncio
import json
from dataclasses import replace
from typing import Any, Final

import pytest

from setpoint.core.plan import Action
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import (
    DependencyInvalid,
    ImmutableFieldChanged,
    LocationChanged,
    RemoteRefused,
    RemoteUnavailable,
)
from setpoint.localcloud.faults import DropConnection, FailRequest, FaultTiming
from setpoint.testing import EngineHarness, after_any_await
from tests.kinds.key_harness import (
    ACCOUNT,
    EMAIL,
    GROUP,
    KEYS,
    NAME,
    SECRET,
    KeyHarness,
    key_harness,
    manifest,
    settled,
)

KIND: Final = (GROUP, "IAMServiceAccountKey")


def test_the_credentials_are_in_a_secret_of_the_resource_and_the_public_key_in_its_status() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            key_id = await settled(harness)

            credentials = json.loads((await harness.entries())["key.json"])
            assert list(harness.live()) == [key_id]
            assert (credentials["type"], credentials["private_key_id"]) == ("service_account", key_id)
            assert credentials["client_email"] == EMAIL
            resource, secret = await harness.engine.resource(NAME), await harness.engine.resource(SECRET)
            owners: Any = secret.document["metadata"]
            assert [one["uid"] for one in owners["ownerReferences"]] == [resource.uid]
            live = harness.live()[key_id]
            assert {name: resource.status[name] for name in ("name", "publicKey", "validAfter", "validBefore")} == {
                "name": f"{ACCOUNT}/keys/{key_id}",
                "publicKey": live["publicKeyData"],
                "validAfter": live["validAfterTime"],
                "validBefore": "9999-12-31T23:59:59Z",
            }
            assert harness.writes == ["POST keys"]
            assert isinstance(await harness.go_on(), Settled)
            assert harness.writes == ["POST keys"]

    asyncio.run(test())


async def _begin(begin: str, harness: KeyHarness) -> None:
    """Everything up to the step that is killed."""
    await harness.engine.apply(manifest())
    if begin == "created":
        return
    await harness.go_on()
    match begin:
        case "key deleted":
            harness.remove(await harness.kept_id())
        case "secret deleted":
            await harness.store.delete(SECRET)
        case "secret edited":
            await harness.edit({"key.json": b'{"private_key_id": "of another"}', "more": b"text"})
        case _:
            await harness.engine.delete(NAME)


@pytest.mark.parametrize("begin", ["created", "key deleted", "secret deleted", "secret edited", "resource deleted"])
def test_killed_after_any_await_there_is_one_key_that_can_be_used_or_none(begin: str) -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with key_harness() as harness:
            theirs = harness.add()
            await _begin(begin, harness)
            was_killed = await harness.is_killed_after(awaits)
            # A key whose answer was lost is left until an operator deletes it.
            await harness.delete_unproven()

            if begin == "resource deleted":
                await harness.go_on()
                assert await harness.engine.is_gone(NAME)
                assert (list(harness.live()), await harness.entries()) == ([theirs], {})
                return was_killed
            assert len(harness.live()) <= 2
            outcome = await harness.go_on()
            assert isinstance(outcome, Settled), f"killed after await {awaits}: {outcome}"
            key_id = await harness.kept_id()
            assert sorted(harness.live()) == sorted([theirs, key_id]), f"killed after await {awaits}"
            assert (await harness.engine.resource(NAME)).status["name"] == f"{ACCOUNT}/keys/{key_id}"
            assert (await harness.engine.resource(NAME)).status["publicKey"]
            return was_killed

    asyncio.run(after_any_await(is_killed_after, least=4))


def test_keys_of_one_account_whose_process_is_killed_are_told_apart_by_their_claims() -> None:
    another = ResourceRef(GROUP, NAME.kind, "team", "another")

    async def is_killed_after(awaits: int) -> bool:
        async with key_harness() as harness:
            for name in ("app-key", "another"):
                await harness.engine.apply(manifest(name))
            was_killed = await harness.is_killed_after(awaits)
            await harness.delete_unproven()

            # The other resource is first: its key is younger than the one whose answer was lost.
            assert isinstance(await harness.go_on(another), Settled)
            assert isinstance(await harness.go_on(), Settled)
            kept = [await harness.kept_id(), await harness.kept_id(SECRET._replace(name="another"))]
            assert sorted(harness.live()) == sorted(kept), f"killed after await {awaits}"
            return was_killed

    asyncio.run(after_any_await(is_killed_after, least=4))


def test_a_key_whose_answer_was_lost_is_left_and_named_until_it_is_deleted() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            harness.cloud.inject(DropConnection(method="POST", times=1, moment=FaultTiming.AFTER))
            await harness.engine.apply(manifest())

            lost = await harness.go_on()
            orphan = list(harness.live())
            outcome = await harness.go_on()

            assert isinstance(lost, Stopped)
            assert isinstance(lost.error, RemoteUnavailable)
            assert len(orphan) == 1
            assert isinstance(outcome, Stopped)
            told = (
                "the answer to a creation was lost, and whether it created one of these is not known: "
                f"{ACCOUNT}/keys/{orphan[0]}. Delete those that no program uses, and another is created; or delete "
                "the resource and apply it again, which leaves all of them"
            )
            assert isinstance(outcome.error, RemoteRefused)
            assert told in str(outcome.error)
            assert told in await harness.ready_message()
            assert [told in one.message for one in await harness.store.events(NAME)][-1:] == [True]
            assert harness.writes == ["POST keys"]
            harness.remove(orphan[0])
            assert isinstance(await harness.go_on(), Settled)
            assert list(harness.live()) == [await harness.kept_id()]

    asyncio.run(test())


def test_the_only_new_key_is_not_deleted_when_another_writer_made_it_in_the_same_moment() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            harness.cloud.inject(DropConnection(method="POST", times=1, moment=FaultTiming.BEFORE))
            await harness.engine.apply(manifest())
            await harness.go_on()
            # The creation never arrived.
            theirs = harness.add()

            outcome = await harness.go_on()

            assert isinstance(outcome, Stopped)
            assert f"{ACCOUNT}/keys/{theirs}" in str(outcome.error)
            await harness.engine.delete(NAME)
            await harness.go_on()
            assert await harness.engine.is_gone(NAME)
            assert list(harness.live()) == [theirs]
            left = [one for one in await harness.store.events() if one.reason == "ObjectLeft"]
            assert [one.severity for one in left] == ["Warning"]
            assert f"{ACCOUNT}/keys/{theirs}. They are left alone" in left[0].message

    asyncio.run(test())


def test_a_key_of_another_writer_is_never_taken_for_one_that_was_lost() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            harness.cloud.inject(DropConnection(method="POST", times=1, moment=FaultTiming.BEFORE))
            await harness.engine.apply(manifest())
            await harness.go_on()
            # The creation never arrived. A key of a quarter of an hour later is another writer's.
            harness.cloud.advance(900)
            theirs = harness.add()

            assert isinstance(await harness.go_on(), Settled)

            assert sorted(harness.live()) == sorted([theirs, await harness.kept_id()])

    asyncio.run(test())


def test_of_several_keys_that_may_be_the_lost_one_none_is_deleted() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            harness.cloud.inject(DropConnection(method="POST", times=1, moment=FaultTiming.AFTER))
            await harness.engine.apply(manifest())
            await harness.go_on()
            harness.add()
            before = sorted(harness.live())

            outcome = await harness.go_on()

            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, RemoteRefused)
            named = ", ".join(f"{ACCOUNT}/keys/{one}" for one in before)
            assert f"whether it created one of these is not known: {named}. Delete" in str(outcome.error)
            assert sorted(harness.live()) == before
            await harness.engine.delete(NAME)
            await harness.go_on()
            assert await harness.engine.is_gone(NAME)
            assert sorted(harness.live()) == before

    asyncio.run(test())


def test_a_key_that_another_writer_disables_stays_disabled_and_the_status_says_so() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            key_id = await settled(harness)
            assert harness.cloud.call("POST", f"{KEYS}/{key_id}:disable", {}).status == 200
            harness.cloud.journal.clear()

            assert isinstance(await harness.go_on(), Settled)

            assert harness.writes == []
            assert (await harness.engine.resource(NAME)).status["disabled"] is True

    asyncio.run(test())


@pytest.mark.parametrize(
    ("before", "after", "error", "named"),
    [
        ({"keyAlgorithm": "KEY_ALG_RSA_2048"}, {"keyAlgorithm": "KEY_ALG_RSA_1024"}, ImmutableFieldChanged, None),
        (
            {"privateKeyType": "TYPE_GOOGLE_CREDENTIALS_FILE"},
            {"privateKeyType": "TYPE_UNSPECIFIED"},
            ImmutableFieldChanged,
            None,
        ),
        (
            {"publicKeyType": "TYPE_X509_PEM_FILE"},
            {"publicKeyType": "TYPE_RAW_PUBLIC_KEY"},
            ImmutableFieldChanged,
            None,
        ),
        (
            {},
            {"serviceAccountRef": {"external": EMAIL.replace("app", "other")}},
            LocationChanged,
            "serviceAccounts/other-account@",
        ),
    ],
)
def test_no_field_can_change(
    before: dict[str, Any], after: dict[str, Any], error: type[Exception], named: str | None
) -> None:
    async def test() -> None:
        async with key_harness() as harness:
            key_id = await settled(harness, **before)
            await harness.engine.apply(manifest(**{**before, **after}))

            outcome = await harness.go_on()

            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, error), outcome.error
            assert (named or f"spec.{next(iter(after))}") in str(outcome.error)
            assert list(harness.live()) == [key_id]

    asyncio.run(test())


def test_a_raised_revision_writes_nothing_to_a_key_that_the_former_one_made() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            await settled(harness, keyAlgorithm="KEY_ALG_RSA_1024")
            harness.cloud.journal.clear()
            kind = replace(harness.kind(harness.google), revision=2)
            upgraded = EngineHarness([kind], harness.store, harness.clock)

            plan, outcome = await upgraded.plan(NAME), await upgraded.go_on(NAME)

            assert (plan.writes, harness.writes) == ((), [])
            assert isinstance(outcome, Settled)

    asyncio.run(test())


def test_a_secret_of_another_owner_stops_the_creation_before_it_is_sent() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            await harness.engine.secret("app-key", {"key.json": "theirs"}, "team")
            await harness.engine.apply(manifest())

            outcome = await harness.go_on()

            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, DependencyInvalid)
            assert (harness.live(), await harness.entries()) == ({}, {"key.json": b"theirs"})

    asyncio.run(test())


def test_a_creation_that_is_refused_leaves_no_search_on_record() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            harness.cloud.inject(FailRequest(403, method="POST", times=1))
            await harness.engine.apply(manifest())
            refused = await harness.go_on()
            theirs = harness.add()

            outcome = await harness.go_on()

            assert isinstance(refused, Stopped)
            assert isinstance(outcome, Settled)
            assert sorted(harness.live()) == sorted([theirs, await harness.kept_id()])

    asyncio.run(test())


def test_a_preview_writes_neither_a_secret_nor_a_key() -> None:
    async def test() -> None:
        async with key_harness() as harness:
            await harness.engine.apply(manifest(privateKeyType="TYPE_PKCS12_FILE"))

            plan = await harness.engine.plan(NAME)

            assert plan.because == "Secret team/app-key is created first, for what the service issues"
            assert [one.action for one in plan.writes] == [Action.CREATE]
            assert (harness.live(), await harness.store.get(SECRET)) == ({}, None)

    asyncio.run(test())
