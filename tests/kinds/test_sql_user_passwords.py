"""A password reaches the service when it is another one, takes nothing along with it, and shows nowhere."""

from typing import Any

import pytest

from setpoint.core.schema.policy import UNMANAGED
from setpoint.core.values.canonical import canonical
from setpoint.engine.context import Settled
from setpoint.engine.step.reconcile import preview
from setpoint.errors import DependencyInvalid, DependencyNotFound, RemoteRefused
from setpoint.localcloud.faults import FailRequest
from tests.kinds.bench import PROJECT, Bench, on_bench
from tests.kinds.test_sql_user import MAIN, POLICY, REF, USERS, calls, error_in, user, with_instance

SECRET = {"valueFrom": {"secretKeyRef": {"name": "login", "key": "word"}}}


async def secret(engine: Bench, text: str, key: str = "word", name: str = "login") -> None:
    """Hands in a Secret."""
    metadata = {"name": name, "namespace": "team"}
    await engine.store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {key: text}})


def opens(engine: Bench, password: str, name: str = "some-user") -> bool:
    """Whether the user could log in with this password, as the local cloud tells over HTTP."""
    asked = {"project": PROJECT, "instance": "main", "name": name, "password": password}
    answer = engine.cloud.call("POST", "/_local/password", asked).body
    assert answer is not None
    return bool(answer["matches"])


# --- Rotation --------------------------------------------------------------------------------------------------------


def test_a_rotated_secret_is_the_new_password_and_the_old_one_is_none() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        first = opens(engine, "one")
        await secret(engine, "two")
        outcomes = [await engine.go_on(REF), await engine.go_on(REF)]
        return first, opens(engine, "one"), opens(engine, "two"), outcomes, calls(engine)

    first, old, new, outcomes, sent = on_bench(scenario)

    assert (first, old, new) == (True, False, True)
    assert [len(outcome.plan.writes) for outcome in outcomes] == [1, 0]
    members = {"instance": "main", "name": "some-user", "password": "[redacted]"}
    assert sent == [("POST", {}, members), ("PUT", {"host": "%", "name": "some-user"}, members)]


@pytest.mark.parametrize(("name", "key"), [("login", "other"), ("spare", "word")])
def test_another_key_and_another_secret_are_another_password(name: str, key: str) -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine, "POSTGRES_16")
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        await secret(engine, "two", key, name)
        await engine.settle(user({**MAIN, "password": {"valueFrom": {"secretKeyRef": {"name": name, "key": key}}}}))
        return opens(engine, "two")

    assert on_bench(scenario)


def test_whoever_is_adopted_gets_the_password_once() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine, "POSTGRES_16")
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "resourceID": "postgres", "password": SECRET}))
        await engine.go_on(REF)
        return opens(engine, "one", "postgres"), calls(engine)

    members = {"instance": "main", "name": "postgres", "password": "[redacted]"}
    assert on_bench(scenario) == (True, [("PUT", {"name": "postgres"}, members)])


def test_a_password_that_was_refused_is_sent_again() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        await secret(engine, "two")
        engine.cloud.inject(FailRequest(400, method="PUT"))
        return error_in(await engine.go_on(REF)), await engine.go_on(REF), opens(engine, "two")

    error, outcome, is_new = on_bench(scenario)

    assert isinstance(error, RemoteRefused)
    assert isinstance(outcome, Settled)
    assert is_new


def test_a_user_from_one_host_does_not_get_the_password_of_another() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        engine.cloud.call("POST", USERS, {"name": "some-user", "host": "%", "password": "theirs"})
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "host": "10.0.0.1", "password": SECRET}))
        await secret(engine, "two")
        await engine.go_on(REF)
        ours = engine.cloud.password_matches(PROJECT, "main", "some-user", "two", host="10.0.0.1")
        return ours, opens(engine, "theirs")

    assert on_bench(scenario) == (True, True)


def test_another_policy_leaves_the_password_alone() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        engine.cloud.call("PUT", f"{USERS}?name=some-user", {"password": "chosen by the user"})
        await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        return opens(engine, "chosen by the user"), "password" in engine.sent[-1][1]

    assert on_bench(scenario) == (True, False)


def test_another_password_leaves_the_policy_alone() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        await secret(engine, "two")
        await engine.go_on(REF)
        return engine.live(f"{USERS}/some-user")["passwordPolicy"], engine.sent[-1][1]["passwordPolicy"]

    assert on_bench(scenario) == ({**POLICY, "status": {}}, POLICY)


def test_password_and_policy_change_with_one_call() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        await secret(engine, "two")
        await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": {"allowedFailedAttempts": 5}}))
        return [entry.method for entry in engine.writes], opens(engine, "two"), engine.live(f"{USERS}/some-user")

    methods, is_new, live = on_bench(scenario)

    assert (methods, is_new) == (["POST", "PUT"], True)
    assert live["passwordPolicy"]["allowedFailedAttempts"] == 5


def test_an_unmanaged_password_is_given_once_and_never_again() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}, annotations={UNMANAGED: "spec.password"}))
        await secret(engine, "two")
        outcome = await engine.go_on(REF)
        return outcome, opens(engine, "one"), [entry.method for entry in engine.writes]

    outcome, is_old, methods = on_bench(scenario)

    assert isinstance(outcome, Settled)
    assert (is_old, methods) == (True, ["POST"])


# --- The value in the spec -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["one", "", "spaces and 'quotes' \"too\"", "zoë\u2028\U0001f600", "a" * 500])
def test_a_new_user_gets_the_value_in_the_spec(text: str) -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await engine.settle(user({**MAIN, "password": {"value": text}}))
        await engine.go_on(REF)
        return opens(engine, text), len(engine.sent)

    assert on_bench(scenario) == (True, 1)


def test_another_value_in_the_spec_is_the_new_password() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await engine.settle(user({**MAIN, "password": {"value": "one"}}))
        await engine.settle(user({**MAIN, "password": {"value": "two"}}))
        await engine.settle(user({**MAIN, "password": {"value": "two"}, "passwordPolicy": POLICY}))
        sent = ["password" in (entry.body or {}) for entry in engine.writes]
        return opens(engine, "one"), opens(engine, "two"), sent

    assert on_bench(scenario) == (False, True, [True, True, False])


def test_whoever_is_adopted_gets_the_value_in_the_spec_once() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine, "POSTGRES_16")
        await engine.settle(user({**MAIN, "resourceID": "postgres", "password": {"value": "one"}}))
        await engine.go_on(REF)
        return opens(engine, "one", "postgres"), [entry.method for entry in engine.writes]

    assert on_bench(scenario) == (True, ["PUT"])


def test_a_value_that_moves_into_a_secret_and_back_opens_all_the_way() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await secret(engine, "two")
        doors = []
        for password, text in (({"value": "one"}, "one"), (SECRET, "two"), ({"value": "three"}, "three")):
            await engine.settle(user({**MAIN, "password": password}))
            doors.append(opens(engine, text))
        return doors

    assert on_bench(scenario) == [True, True, True]


# --- What is missing -------------------------------------------------------------------------------------------------


def test_the_secret_and_its_key_have_to_be_there() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        missing = error_in(await engine.settle(user({**MAIN, "password": SECRET})))
        await secret(engine, "one", "another-key")
        return missing, error_in(await engine.go_on(REF)), await engine.ready(REF), engine.cloud.journal.entries

    missing, invalid, told, asked = on_bench(scenario)

    assert type(missing) is DependencyNotFound
    assert type(invalid) is DependencyInvalid
    assert told == ("False", "DependencyInvalid", "key 'word' was not found in Secret team/login")
    assert asked == ()


def test_a_secret_that_goes_later_is_told_and_takes_nothing_away() -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        await secret(engine, "one", "another-key")
        return error_in(await engine.go_on(REF)), opens(engine, "one"), len(engine.sent)

    error, is_there, sent = on_bench(scenario)

    assert isinstance(error, DependencyInvalid)
    assert (is_there, sent) == (True, 1)


# --- What shows ------------------------------------------------------------------------------------------------------


def test_a_password_shows_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(engine: Bench) -> Any:
        await with_instance(engine)
        await secret(engine, "hunter2")
        created = await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        await secret(engine, "hunter3")
        plan = await preview(REF, engine.engine)
        engine.cloud.inject(FailRequest(400, method="PUT"))
        refused, updated = await engine.go_on(REF), await engine.go_on(REF)
        kept, notes = await engine.resource(REF), await engine.store.events()
        texts = [created, plan, plan.to_data(), refused, updated, canonical(kept.document).decode(), notes]
        return plan, [str(text) for text in texts]

    plan, texts = on_bench(scenario)

    assert [(str(change.path), change.before, change.after) for change in plan.changes] == [
        ("spec.password", "(redacted)", "(redacted)")
    ]
    assert [text for text in (*texts, caplog.text) if "hunter" in text] == []
