"""Which user a resource is: its name in the service, and its host on engines with hosts."""

from typing import Any

import pytest

from setpoint.engine.intent import check_manifest
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Gone, Settled
from setpoint.errors import (
    DependencyNotFound,
    DependencyNotReady,
    ImmutableFieldChanged,
    LocationChanged,
    ManifestInvalid,
)
from setpoint.kinds.gcp.sql_user import SqlUserKind
from tests.kinds.kind_harness import PROJECT, KindHarness, database, in_kind_harness
from tests.kinds.test_sql_user import EXTERNAL, MAIN, REF, USERS, calls, error_in, names, user, with_instance


def test_a_wildcard_host_and_no_host_are_the_same_user() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        outcomes = [
            await engine.settle(user({**MAIN, **declared}))
            for declared in ({}, {"host": "%"}, {"host": None}, {"host": ""})
        ]
        return outcomes, engine.sent, names(engine)

    outcomes, sent, there = in_kind_harness(scenario)

    assert [type(outcome) for outcome in outcomes] == [Settled] * 4
    assert (len(sent), there) == (1, [("root", "%"), ("some-user", "%")])


def test_a_change_of_the_host_is_refused() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(user({**MAIN, "host": "10.0.0.1"}))
        moved = await engine.settle(user({**MAIN, "host": "10.0.0.2"}))
        return error_in(moved), names(engine), await engine.delete(REF), names(engine)

    error, before, outcome, after = in_kind_harness(scenario)

    assert isinstance(error, LocationChanged)
    assert f"stands for projects/{PROJECT}/instances/main/users/some-user?host=10.0.0.1" in str(error)
    assert before == [("root", "%"), ("some-user", "10.0.0.1")]
    assert (outcome, after) == (Gone(), [("root", "%")])


def test_one_name_with_two_hosts_is_two_resources() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        declared = {"passwordPolicy": {"allowedFailedAttempts": 3}}
        await engine.settle(user({**MAIN, "resourceID": "app", "host": "10.0.0.1"}, "near"))
        far = await engine.apply(user({**MAIN, "resourceID": "app", **declared}, "far"))
        await engine.step_until_done(far)
        await engine.delete(far)
        return names(engine)

    assert in_kind_harness(scenario) == [("root", "%"), ("app", "10.0.0.1")]


@pytest.mark.parametrize("version", ["MYSQL_8_0", "POSTGRES_16", "SQLSERVER_2019_STANDARD"])
@pytest.mark.parametrize("name", ["a b", "a/b?c=d&e", "%41", "o'neill", "Zoë", "a@b", "?host=x", "*", "a+b#c"])
def test_a_name_may_contain_any_character(version: str, name: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, version)
        policy = {"passwordPolicy": {"allowedFailedAttempts": 3}}
        outcomes = [await engine.settle(user({**MAIN, "resourceID": name, **declared})) for declared in ({}, policy)]
        there = [one for one, _ in names(engine)]
        return outcomes, there, await engine.delete(REF), names(engine)

    outcomes, there, gone, after = in_kind_harness(scenario)

    assert [type(outcome) for outcome in outcomes] == [Settled, Settled]
    assert there.count(name) == 1
    assert (gone, name in dict(after)) == (Gone(), False)


@pytest.mark.parametrize(
    ("version", "name"), [("MYSQL_8_0", "root"), ("POSTGRES_16", "postgres"), ("SQLSERVER_2019_STANDARD", "sqlserver")]
)
def test_a_default_user_is_adopted(version: str, name: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, version)
        before = names(engine)
        outcome = await engine.settle(user({**MAIN, "resourceID": name}))
        return outcome, engine.sent, names(engine) == before

    outcome, sent, is_same = in_kind_harness(scenario)

    assert isinstance(outcome, Settled)
    assert (sent, is_same) == ([], True)


def test_mysql_lists_an_iam_user_by_a_shorter_name() -> None:
    spec = {**MAIN, "resourceID": "ann@example.com", "type": "CLOUD_IAM_USER"}

    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        outcomes = [await engine.settle(user(spec)), await engine.step_until_done(REF)]
        there = names(engine)
        await engine.delete(REF)
        return outcomes, there, calls(engine)

    outcomes, there, sent = in_kind_harness(scenario)

    assert [type(outcome) for outcome in outcomes] == [Settled, Settled]
    assert there == [("root", "%"), ("ann", "%")]
    assert sent == [
        ("POST", {}, {"instance": "main", "name": "ann@example.com", "type": "CLOUD_IAM_USER"}),
        ("DELETE", {"host": "%", "name": "ann"}, None),
    ]


def test_an_iam_user_is_not_confused_with_a_user_of_a_similar_name() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        engine.cloud.call("POST", USERS, {"name": "ann@example.com", "type": "CLOUD_IAM_USER"})
        await engine.settle(user({**MAIN, "resourceID": "ann@corp"}))
        return names(engine)

    assert in_kind_harness(scenario) == [("root", "%"), ("ann", "%"), ("ann@corp", "%")]


def test_a_change_of_the_user_type_is_refused() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, "POSTGRES_16")
        await engine.settle(user(MAIN))
        return error_in(await engine.settle(user({**MAIN, "type": "CLOUD_IAM_SERVICE_ACCOUNT"}))), len(engine.sent)

    error, sent = in_kind_harness(scenario)

    assert isinstance(error, ImmutableFieldChanged)
    assert (error.paths, sent) == (("spec.type",), 1)


def test_only_mysql_has_hosts() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, "POSTGRES_16")
        outcome = await engine.settle(user({**MAIN, "host": "%"}))
        return error_in(outcome), engine.cloud.journal.entries

    error, asked = in_kind_harness(scenario)

    assert isinstance(error, ManifestInvalid)
    assert str(error) == (
        "SQLUser team/some-user: spec.host is '%', and only users of MySQL have a host: "
        "leave it out, for the instance is POSTGRES_16"
    )
    assert asked == ()


@pytest.mark.parametrize("external", ["main", f"projects/{PROJECT}/instances/main"])
def test_an_instance_can_be_referred_to_by_every_form_of_its_name(external: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(user({"instanceRef": {"external": external}, "host": "10.0.0.1"}))
        return names(engine)

    assert in_kind_harness(scenario) == [("root", "%"), ("some-user", "10.0.0.1")]


def test_a_missing_or_unready_instance_is_waited_for() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        other = user({"instanceRef": {"name": "other"}})
        missing = await engine.settle(other)
        await engine.store.apply({**database({}, "other"), "kind": "SQLInstance"})
        return missing, await engine.settle(other), await engine.ready(REF), engine.cloud.journal.entries

    missing, unready, ready, asked = in_kind_harness(scenario)

    assert type(error_in(missing)) is DependencyNotFound
    assert type(error_in(unready)) is DependencyNotReady
    assert ready == ("False", "DependencyNotReady", "reference SQLInstance team/other is not ready")
    assert asked == ()


# --- Invalid manifests -----------------------------------------------------------------------------------------------

KEY = {"secretKeyRef": {"name": "s", "key": "k"}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.instanceRef is missing"),
        ({"instanceRef": {}}, "spec.instanceRef needs name or external"),
        ({"instanceRef": {"external": "projects/p"}}, "write the instance's name, or projects/…/instances/…"),
        ({**EXTERNAL, "resourceID": ""}, "spec.resourceID"),
        ({**EXTERNAL, "name": "x"}, "there is no field spec.name"),
        ({**EXTERNAL, "deletionPolicy": "ABANDON"}, "there is no field spec.deletionPolicy"),
        ({**EXTERNAL, "type": "SOMEBODY"}, "spec.type: invalid enum value 'SOMEBODY'"),
        ({**EXTERNAL, "password": "hunter2"}, "spec.password is text: write a map of fields"),
        ({**EXTERNAL, "password": {}}, "spec.password needs value or valueFrom, and not both: write one of them"),
        ({**EXTERNAL, "password": {"value": "hunter2", "valueFrom": KEY}}, "spec.password needs value or valueFrom"),
        ({**EXTERNAL, "password": {"value": 7}}, "spec.password.value is a number: write text, in quotes"),
        ({**EXTERNAL, "password": {"valueFrom": {}}}, "spec.password.valueFrom.secretKeyRef is missing"),
        ({**EXTERNAL, "password": {"valueFrom": {"secretKeyRef": {"name": "s"}}}}, "secretKeyRef.key is missing"),
        (
            {**EXTERNAL, "type": "CLOUD_IAM_USER", "password": {"valueFrom": KEY}},
            "spec.password is not for a user of type CLOUD_IAM_USER: leave it out",
        ),
        (
            {**EXTERNAL, "passwordPolicy": {"passwordExpirationDuration": "30d"}},
            "spec.passwordPolicy.passwordExpirationDuration is '30d': write it in seconds, as 2592000s",
        ),
        ({**EXTERNAL, "passwordPolicy": {"passwordExpirationDuration": ""}}, "is '': write it in seconds"),
        ({**EXTERNAL, "passwordPolicy": {"allowedFailedAttempts": "3"}}, "write a whole number, without quotes"),
    ],
)
def test_an_invalid_spec_is_refused_before_any_request(spec: dict[str, Any], message: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        with pytest.raises(ManifestInvalid) as caught:
            check_manifest(Resource(user(spec)), SqlUserKind(engine.google))
        return caught.value, error_in(await engine.settle(user(spec))), engine.cloud.journal.entries

    at_once, error, asked = in_kind_harness(scenario)

    assert isinstance(error, ManifestInvalid)
    assert message in str(error)
    assert "hunter2" not in str(error)
    assert str(at_once) == str(error)
    assert asked == ()


def test_output_only_fields_of_a_policy_may_be_in_the_spec() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        declared = {"allowedFailedAttempts": 3, "status": [{"locked": True}]}
        await engine.settle(user({**MAIN, "passwordPolicy": declared}))
        await engine.step_until_done(REF)
        return engine.sent

    policy = {"allowedFailedAttempts": 3}
    assert in_kind_harness(scenario) == [("POST", {"instance": "main", "name": "some-user", "passwordPolicy": policy})]
