"""Passwords: sent when they change, without any other field, and redacted everywhere."""

from typing import Any

import pytest

from setpoint.core.schema.policy import UNMANAGED
from setpoint.core.values.canonical import canonical
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import preview
from setpoint.errors import DependencyInvalid, DependencyNotFound, RemoteRefused
from setpoint.localcloud.faults import FailRequest
from tests.kinds.kind_harness import PROJECT, KindHarness, in_kind_harness
from tests.kinds.test_sql_user import MAIN, POLICY, REF, USERS, calls, error_in, user, with_instance

SECRET = {"valueFrom": {"secretKeyRef": {"name": "login", "key": "word"}}}


async def secret(engine: KindHarness, text: str, key: str = "word", name: str = "login") -> None:
    """Applies a Secret."""
    metadata = {"name": name, "namespace": "team"}
    await engine.store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {key: text}})


def opens(engine: KindHarness, password: str, name: str = "some-user") -> bool:
    """Whether the user can log in with this password, by the admin API of the local cloud."""
    asked = {"project": PROJECT, "instance": "main", "name": name, "password": password}
    answer = engine.cloud.call("POST", "/_local/password", asked).body
    assert answer is not None
    return bool(answer["matches"])


# --- Rotation --------------------------------------------------------------------------------------------------------


def test_a_rotated_secret_replaces_the_password() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        first = opens(engine, "one")
        await secret(engine, "two")
        outcomes = [await engine.step_until_done(REF), await engine.step_until_done(REF)]
        return first, opens(engine, "one"), opens(engine, "two"), outcomes, calls(engine)

    first, old, new, outcomes, sent = in_kind_harness(scenario)

    assert (first, old, new) == (True, False, True)
    assert [len(outcome.plan.writes) for outcome in outcomes] == [1, 0]
    members = {"instance": "main", "name": "some-user", "password": "[redacted]"}
    assert sent == [("POST", {}, members), ("PUT", {"host": "%", "name": "some-user"}, members)]


@pytest.mark.parametrize(("name", "key"), [("login", "other"), ("spare", "word")])
def test_another_key_or_secret_is_another_password(name: str, key: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, "POSTGRES_16")
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        await secret(engine, "two", key, name)
        await engine.settle(user({**MAIN, "password": {"valueFrom": {"secretKeyRef": {"name": name, "key": key}}}}))
        return opens(engine, "two")

    assert in_kind_harness(scenario)


def test_an_adopted_user_gets_the_password_once() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, "POSTGRES_16")
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "resourceID": "postgres", "password": SECRET}))
        await engine.step_until_done(REF)
        return opens(engine, "one", "postgres"), calls(engine)

    members = {"instance": "main", "name": "postgres", "password": "[redacted]"}
    assert in_kind_harness(scenario) == (True, [("PUT", {"name": "postgres"}, members)])


def test_a_password_that_was_refused_is_sent_again() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        await secret(engine, "two")
        engine.cloud.inject(FailRequest(400, method="PUT"))
        return error_in(await engine.step_until_done(REF)), await engine.step_until_done(REF), opens(engine, "two")

    error, outcome, is_new = in_kind_harness(scenario)

    assert isinstance(error, RemoteRefused)
    assert isinstance(outcome, Settled)
    assert is_new


def test_a_user_from_one_host_does_not_get_the_password_of_another() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        engine.cloud.call("POST", USERS, {"name": "some-user", "host": "%", "password": "theirs"})
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "host": "10.0.0.1", "password": SECRET}))
        await secret(engine, "two")
        await engine.step_until_done(REF)
        ours = engine.cloud.password_matches(PROJECT, "main", "some-user", "two", host="10.0.0.1")
        return ours, opens(engine, "theirs")

    assert in_kind_harness(scenario) == (True, True)


def test_a_change_of_the_policy_does_not_send_the_password() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        engine.cloud.call("PUT", f"{USERS}?name=some-user", {"password": "chosen by the user"})
        await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        return opens(engine, "chosen by the user"), "password" in engine.sent[-1][1]

    assert in_kind_harness(scenario) == (True, False)


def test_a_change_of_the_password_keeps_the_policy() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        await secret(engine, "two")
        await engine.step_until_done(REF)
        return engine.live(f"{USERS}/some-user")["passwordPolicy"], engine.sent[-1][1]["passwordPolicy"]

    assert in_kind_harness(scenario) == ({**POLICY, "status": {}}, POLICY)


def test_password_and_policy_change_with_one_call() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        await secret(engine, "two")
        await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": {"allowedFailedAttempts": 5}}))
        return [entry.method for entry in engine.writes], opens(engine, "two"), engine.live(f"{USERS}/some-user")

    methods, is_new, live = in_kind_harness(scenario)

    assert (methods, is_new) == (["POST", "PUT"], True)
    assert live["passwordPolicy"]["allowedFailedAttempts"] == 5


def test_an_unmanaged_password_is_sent_at_creation_only() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}, annotations={UNMANAGED: "spec.password"}))
        await secret(engine, "two")
        outcome = await engine.step_until_done(REF)
        return outcome, opens(engine, "one"), [entry.method for entry in engine.writes]

    outcome, is_old, methods = in_kind_harness(scenario)

    assert isinstance(outcome, Settled)
    assert (is_old, methods) == (True, ["POST"])


# --- The value in the spec -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["one", "", "spaces and 'quotes' \"too\"", "zoë\u2028\U0001f600", "a" * 500])
def test_a_new_user_gets_the_value_in_the_spec(text: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(user({**MAIN, "password": {"value": text}}))
        await engine.step_until_done(REF)
        return opens(engine, text), len(engine.sent)

    assert in_kind_harness(scenario) == (True, 1)


def test_a_changed_value_in_the_spec_is_the_new_password() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(user({**MAIN, "password": {"value": "one"}}))
        await engine.settle(user({**MAIN, "password": {"value": "two"}}))
        await engine.settle(user({**MAIN, "password": {"value": "two"}, "passwordPolicy": POLICY}))
        sent = ["password" in (entry.body or {}) for entry in engine.writes]
        return opens(engine, "one"), opens(engine, "two"), sent

    assert in_kind_harness(scenario) == (False, True, [True, True, False])


def test_an_adopted_user_gets_the_value_in_the_spec_once() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, "POSTGRES_16")
        await engine.settle(user({**MAIN, "resourceID": "postgres", "password": {"value": "one"}}))
        await engine.step_until_done(REF)
        return opens(engine, "one", "postgres"), [entry.method for entry in engine.writes]

    assert in_kind_harness(scenario) == (True, ["PUT"])


def test_a_password_stays_valid_while_it_moves_into_a_secret_and_back() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await secret(engine, "two")
        doors = []
        for password, text in (({"value": "one"}, "one"), (SECRET, "two"), ({"value": "three"}, "three")):
            await engine.settle(user({**MAIN, "password": password}))
            doors.append(opens(engine, text))
        return doors

    assert in_kind_harness(scenario) == [True, True, True]


# --- Missing Secrets -------------------------------------------------------------------------------------------------


def test_a_missing_secret_or_key_is_waited_for() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        missing = error_in(await engine.settle(user({**MAIN, "password": SECRET})))
        await secret(engine, "one", "another-key")
        return (
            missing,
            error_in(await engine.step_until_done(REF)),
            await engine.ready(REF),
            engine.cloud.journal.entries,
        )

    missing, invalid, ready, asked = in_kind_harness(scenario)

    assert type(missing) is DependencyNotFound
    assert type(invalid) is DependencyInvalid
    assert ready == ("False", "DependencyInvalid", "key 'word' was not found in Secret team/login")
    assert asked == ()


def test_a_secret_that_is_deleted_later_is_reported_and_the_password_is_kept() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await secret(engine, "one")
        await engine.settle(user({**MAIN, "password": SECRET}))
        await secret(engine, "one", "another-key")
        return error_in(await engine.step_until_done(REF)), opens(engine, "one"), len(engine.sent)

    error, is_there, sent = in_kind_harness(scenario)

    assert isinstance(error, DependencyInvalid)
    assert (is_there, sent) == (True, 1)


# --- Redaction -------------------------------------------------------------------------------------------------------


def test_a_password_is_in_no_status_event_plan_or_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await secret(engine, "hunter2")
        created = await engine.settle(user({**MAIN, "password": SECRET, "passwordPolicy": POLICY}))
        await secret(engine, "hunter3")
        plan = await preview(REF, engine.engine)
        engine.cloud.inject(FailRequest(400, method="PUT"))
        refused, updated = await engine.step_until_done(REF), await engine.step_until_done(REF)
        kept, notes = await engine.resource(REF), await engine.store.events()
        texts = [created, plan, plan.to_data(), refused, updated, canonical(kept.document).decode(), notes]
        return plan, [str(text) for text in texts]

    plan, texts = in_kind_harness(scenario)

    assert [(str(change.path), change.before, change.after) for change in plan.changes] == [
        ("spec.password", "(redacted)", "(redacted)")
    ]
    assert [text for text in (*texts, caplog.text) if "hunter" in text] == []
