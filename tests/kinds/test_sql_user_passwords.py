"""A password reaches the service when it is another one, takes nothing along with it, and shows nowhere."""

from typing import Any

import pytest

from setpoint.core.canonical import canonical
from setpoint.core.policy import UNMANAGED
from setpoint.engine.reconcile import preview
from setpoint.engine.scene import Settled
from setpoint.errors import DependencyInvalid, DependencyNotFound, RemoteRefused
from setpoint.localcloud.faults import Fail
from tests.kinds.bench import PROJECT, Bench, on_bench
from tests.kinds.test_sql_user import MAIN, POLICY, REF, USERS, calls, error_in, user, with_instance

SECRET = {"valueFrom": {"secretKeyRef": {"name": "login", "key": "word"}}}


async def secret(world: Bench, text: str, key: str = "word", name: str = "login") -> None:
    """Hands in a Secret."""
    metadata = {"name": name, "namespace": "team"}
    await world.store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {key: text}})


def opens(world: Bench, password: str, name: str = "some-user") -> bool:
    """Whether the user could log in with this password, as the local cloud tells over HTTP."""
    asked = {"project": PROJECT, "instance": "main", "name": name, "password": password}
    answer = world.cloud.call("POST", "/_local/password", asked).body
    assert answer is not None
    return bool(answer["matches"])


# --- Rotation --------------------------------------------------------------------------------------------------------


def test_a_rotated_secret_is_the_new_password_and_the_old_one_is_none() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await secret(world, "one")
        await world.settle(user({**MAIN, "password": SECRET}))
        first = opens(world, "one")
        await secret(world, "two")
        outcomes = [await world.go_on(REF), await world.go_on(REF)]
        return first, opens(world, "one"), opens(world, "two"), outcomes, calls(world)

    first, old, new, outcomes, sent = on_bench(scenario)

    assert (first, old, new) == (True, False, True)
    assert [len(outcome.plan.writes) for outcome in outcomes] == [1, 0]
    members = {"instance": "main", "name": "some-user", "password": "[redacted]"}
    assert sent == [("POST", {}, members), ("PUT", {"host": "%", "name": "some-user"}, members)]


@pytest.mark.parametrize(("name", "key"), [("login", "other"), ("spare", "word")])
def test_another_key_and_another_secret_are_another_password(name: str, key: str) -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world, "POSTGRES_16")
        await secret(world, "one")
        await world.settle(user({**MAIN, "password": SECRET}))
        await secret(world, "two", key, name)
        await world.settle(user({**MAIN, "password": {"valueFrom": {"secretKeyRef": {"name": name, "key": key}}}}))
        return opens(world, "two")

    assert on_bench(scenario)


def test_whoever_is_adopted_gets_the_password_once() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world, "POSTGRES_16")
        await secret(world, "one")
        await world.settle(user({**MAIN, "resourceID": "postgres", "password": SECRET}))
        await world.go_on(REF)
        return opens(world, "one", "postgres"), calls(world)

    members = {"instance": "main", "name": "postgres", "password": "[redacted]"}
    assert on_bench(scenario) == (True, [("PUT", {"name": "postgres"}, members)])


def test_a_password_that_was_refused_is_sent_again() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await secret(world, "one")
        await world.settle(user({**MAIN, "password": SECRET}))
        await secret(world, "two")
        world.cloud.inject(Fail(400, method="PUT"))
        return error_in(await world.go_on(REF)), await world.go_on(REF), opens(world, "two")

    error, outcome, is_new = on_bench(scenario)

    assert isinstance(error, RemoteRefused)
    assert isinstance(outcome, Settled)
    assert is_new


def test_a_user_from_one_host_does_not_get_the_password_of_another() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        world.cloud.call("POST", USERS, {"name": "some-user", "host": "%", "password": "theirs"})
        await secret(world, "one")
        await world.settle(user({**MAIN, "host": "10.0.0.1", "password": SECRET}))
        await secret(world, "two")
        await world.go_on(REF)
        ours = world.cloud.password_matches(PROJECT, "main", "some-user", "two", host="10.0.0.1")
        return ours, opens(world, "theirs")

    assert on_bench(scenario) == (True, True)


def test_another_policy_leaves_the_password_alone() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await secret(world, "one")
        await world.settle(user({**MAIN, "password": SECRET}))
        world.cloud.call("PUT", f"{USERS}?name=some-user", {"password": "chosen by the user"})
        await world.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        return opens(world, "chosen by the user"), "password" in world.sent[-1][1]

    assert on_bench(scenario) == (True, False)


def test_another_password_leaves_the_policy_alone() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await secret(world, "one")
        await world.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        await secret(world, "two")
        await world.go_on(REF)
        return world.live(f"{USERS}/some-user")["passwordPolicy"], world.sent[-1][1]["passwordPolicy"]

    assert on_bench(scenario) == ({**POLICY, "status": {}}, POLICY)


def test_password_and_policy_change_with_one_call() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await secret(world, "one")
        await world.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        await secret(world, "two")
        await world.settle(user({**MAIN, "password": SECRET, "passwordPolicy": {"allowedFailedAttempts": 5}}))
        return [entry.method for entry in world.writes], opens(world, "two"), world.live(f"{USERS}/some-user")

    methods, is_new, live = on_bench(scenario)

    assert (methods, is_new) == (["POST", "PUT"], True)
    assert live["passwordPolicy"]["allowedFailedAttempts"] == 5


def test_an_unmanaged_password_is_given_once_and_never_again() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await secret(world, "one")
        await world.settle(user({**MAIN, "password": SECRET}, annotations={UNMANAGED: "spec.password"}))
        await secret(world, "two")
        outcome = await world.go_on(REF)
        return outcome, opens(world, "one"), [entry.method for entry in world.writes]

    outcome, is_old, methods = on_bench(scenario)

    assert isinstance(outcome, Settled)
    assert (is_old, methods) == (True, ["POST"])


# --- The value in the spec -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["one", "", "spaces and 'quotes' \"too\"", "zoë\u2028\U0001f600", "a" * 500])
def test_a_new_user_gets_the_value_in_the_spec(text: str) -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await world.settle(user({**MAIN, "password": {"value": text}}))
        await world.go_on(REF)
        return opens(world, text), len(world.sent)

    assert on_bench(scenario) == (True, 1)


def test_another_value_in_the_spec_is_the_new_password() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await world.settle(user({**MAIN, "password": {"value": "one"}}))
        await world.settle(user({**MAIN, "password": {"value": "two"}}))
        await world.settle(user({**MAIN, "password": {"value": "two"}, "passwordPolicy": POLICY}))
        sent = ["password" in (entry.body or {}) for entry in world.writes]
        return opens(world, "one"), opens(world, "two"), sent

    assert on_bench(scenario) == (False, True, [True, True, False])


def test_whoever_is_adopted_gets_the_value_in_the_spec_once() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world, "POSTGRES_16")
        await world.settle(user({**MAIN, "resourceID": "postgres", "password": {"value": "one"}}))
        await world.go_on(REF)
        return opens(world, "one", "postgres"), [entry.method for entry in world.writes]

    assert on_bench(scenario) == (True, ["PUT"])


def test_a_value_that_moves_into_a_secret_and_back_opens_all_the_way() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await secret(world, "two")
        doors = []
        for password, text in (({"value": "one"}, "one"), (SECRET, "two"), ({"value": "three"}, "three")):
            await world.settle(user({**MAIN, "password": password}))
            doors.append(opens(world, text))
        return doors

    assert on_bench(scenario) == [True, True, True]


# --- What is missing -------------------------------------------------------------------------------------------------


def test_the_secret_and_its_key_have_to_be_there() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        missing = error_in(await world.settle(user({**MAIN, "password": SECRET})))
        await secret(world, "one", "another-key")
        return missing, error_in(await world.go_on(REF)), await world.ready(REF), world.cloud.journal.entries

    missing, invalid, told, asked = on_bench(scenario)

    assert type(missing) is DependencyNotFound
    assert type(invalid) is DependencyInvalid
    assert told == ("False", "DependencyInvalid", "key 'word' was not found in Secret team/login")
    assert asked == ()


def test_a_secret_that_goes_later_is_told_and_takes_nothing_away() -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await secret(world, "one")
        await world.settle(user({**MAIN, "password": SECRET}))
        await secret(world, "one", "another-key")
        return error_in(await world.go_on(REF)), opens(world, "one"), len(world.sent)

    error, is_there, sent = on_bench(scenario)

    assert isinstance(error, DependencyInvalid)
    assert (is_there, sent) == (True, 1)


# --- What shows ------------------------------------------------------------------------------------------------------


def test_a_password_shows_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: Bench) -> Any:
        await with_instance(world)
        await secret(world, "hunter2")
        created = await world.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        await secret(world, "hunter3")
        plan = await preview(REF, world.world)
        world.cloud.inject(Fail(400, method="PUT"))
        refused, updated = await world.go_on(REF), await world.go_on(REF)
        kept, notes = await world.resource(REF), await world.store.notes()
        texts = [created, plan, plan.to_data(), refused, updated, canonical(kept.document).decode(), notes]
        return plan, [str(text) for text in texts]

    plan, texts = on_bench(scenario)

    assert [(str(change.path), change.before, change.after) for change in plan.changes] == [
        ("spec.password", "(redacted)", "(redacted)")
    ]
    assert [text for text in (*texts, caplog.text) if "hunter" in text] == []
