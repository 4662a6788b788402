"""A generated value is in its Secret before it is sent: killed anywhere, none is lost, and none is set twice."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest

from setpoint.core.values.json_types import JsonObject
from setpoint.deployment.rbac import SECRETS, GroupResource, access_of
from setpoint.deployment.tenants import tenant_rules
from setpoint.engine.owner import refers_to_secrets
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import DependencyInvalid, WriteConflict
from setpoint.kind import KindContext
from setpoint.testing import EngineHarness, Interruption, Killed, after_any_await, die, engine_harness
from tests.engine.owners.accounts import GROUP, AccountKind, Bank

NAME = ResourceRef(GROUP, "Account", "default", "shop")
SECRET = ResourceRef("", "Secret", "default", "shop-login")
MANIFEST: JsonObject = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Account",
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {"loginSecretRef": "shop-login"},
}


async def entries(harness: EngineHarness) -> dict[str, str]:
    """What the Secret has; empty where there is none."""
    found = await harness.store.get(SECRET)
    data: Any = {} if found is None else found.document["data"]
    return {key: base64.b64decode(text).decode() for key, text in data.items()}


async def edit(harness: EngineHarness, entry: Mapping[str, str]) -> None:
    secret = await harness.resource(SECRET)
    data = {key: base64.b64encode(text.encode()).decode() for key, text in entry.items()}
    old: Any = secret.document["data"]
    await harness.store.replace(secret, {**secret.document, "data": {**old, **data}})


async def _begin(begin: str, harness: EngineHarness) -> None:
    """Everything up to the step that is interrupted."""
    await harness.apply(MANIFEST)
    if begin != "created":
        await harness.go_on(NAME)
    match begin:
        case "edited":
            await edit(harness, {"password": "by hand"})
        case "deleted":
            await harness.store.delete(SECRET)
        case "gone":
            await harness.delete(NAME)
        case _:
            pass


async def _is_killed(awaits: int, bank: Bank, harness: EngineHarness) -> bool:
    interruption = Interruption(awaits, die)
    kind = AccountKind(KindContext(), interruption.wrap(bank))
    try:
        await EngineHarness([kind], interruption.wrap(harness.store), harness.clock).go_on(NAME)
    except Killed:
        return True
    return False


async def _kill_at_any_await(begin: str) -> None:
    async def is_killed_after(awaits: int) -> bool:
        bank = Bank()
        async with engine_harness(AccountKind(KindContext(), bank)) as harness:
            await _begin(begin, harness)
            was_killed = await _is_killed(awaits, bank, harness)

            await harness.go_on(NAME)
            outcome = await harness.step(NAME)

            found = await entries(harness)
            if begin == "gone":
                assert (bank.passwords, found) == ({}, {})
                return was_killed
            assert isinstance(outcome, Settled), outcome
            assert begin != "edited" or found["password"] == "by hand", f"killed after await {awaits}"
            assert found["login"] == f"shop:{found['password']}"
            # What the service has last is what the Secret has, and nothing that no Secret had was ever sent.
            sent = list(dict.fromkeys(bank.passwords["shop"]))
            assert sent[-1] == found["password"], f"killed after await {awaits}: {sent}"
            assert len(sent) == (1 if begin == "created" else 2)
            return was_killed

    await after_any_await(is_killed_after, least=4)


@pytest.mark.parametrize("begin", ["created", "edited", "deleted", "gone"])
def test_killed_after_any_await_the_password_is_that_of_the_secret(begin: str) -> None:
    asyncio.run(_kill_at_any_await(begin))


def test_a_preview_writes_no_secret_and_says_that_a_value_is_generated() -> None:
    async def test() -> None:
        bank = Bank()
        async with engine_harness(AccountKind(KindContext(), bank)) as harness:
            await harness.apply(MANIFEST)

            plan = await harness.plan(NAME)

            assert plan.because == "Secret default/shop-login is created first, with a value that is generated"
            assert [str(one.path) for one in plan.changes] == ["spec.password"]
            assert "generated-1" not in str(plan.to_data())
            assert (await entries(harness), bank.passwords) == ({}, {})
            await harness.go_on(NAME)
            await edit(harness, {"login": "wrong"})
            plan = await harness.plan(NAME)
            assert plan.because == "Secret default/shop-login is updated first, with the value that it has"
            await harness.go_on(NAME)
            found = await entries(harness)
            assert found == {"login": f"shop:{bank.passwords['shop'][0]}", "password": bank.passwords["shop"][0]}

    asyncio.run(test())


def test_a_secret_that_appears_meanwhile_is_not_overwritten() -> None:
    async def test() -> None:
        bank = Bank()
        async with engine_harness(AccountKind(KindContext(), bank)) as harness:
            await harness.apply(MANIFEST)

            async def appears() -> None:
                await harness.secret(SECRET.name, {"password": "theirs"})

            interrupted = Interruption(4, appears)
            crossed = EngineHarness(harness.types, interrupted.wrap(harness.store), harness.clock)
            first = await crossed.step(NAME)
            second = await harness.step(NAME)

            assert isinstance(first, Stopped)
            assert isinstance(first.error, WriteConflict | DependencyInvalid)
            assert isinstance(second, Stopped)
            assert isinstance(second.error, DependencyInvalid)
            assert await entries(harness) == {"password": "theirs"}
            assert bank.passwords == {}

    asyncio.run(test())


def test_an_account_of_a_namespace_may_write_secrets_only_where_a_kind_generates_them() -> None:
    definition: JsonObject = {"spec": {"group": GROUP, "names": {"plural": "accounts", "kind": "Account"}}}
    kind = AccountKind(KindContext(), Bank())
    access = access_of([kind], [definition])

    # Its spec has no secretKeyRef: the store of a controller serves Secrets all the same.
    assert refers_to_secrets(kind)
    assert access.children == (SECRETS,)
    assert access.owners == (GroupResource(GROUP, "accounts"),)
    assert tenant_rules(access) == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "update", "delete"]},
        {"apiGroups": [GROUP], "resources": ["accounts/finalizers"], "verbs": ["update"]},
    ]
