"""Users: identified by name and host; passwords are never returned."""

import pytest

from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.schema import JsonBody
from tests.localcloud.requests import DB, MYSQL, POSTGRES, create, error_message, get, ok, refused

USERS = f"{DB}/users"
SQLSERVER: JsonBody = {**MYSQL, "databaseVersion": "SQLSERVER_2019_STANDARD", "rootPassword": "Hunter2!"}


@pytest.mark.parametrize(
    ("body", "users"),
    [
        (MYSQL, [("root", "%")]),
        (POSTGRES, [("postgres", "")]),
        (
            SQLSERVER,
            [("##MS_PolicyEventProcessingLogin##", ""), ("##MS_PolicyTsqlExecutionLogin##", ""), ("sqlserver", "")],
        ),
    ],
)
def test_each_engine_has_its_initial_users(cloud: Cloud, body: JsonBody, users: list[tuple[str, str]]) -> None:
    create(cloud, body)

    assert [(user["name"], user["host"]) for user in get(cloud, USERS)["items"]] == users


def test_a_user_equals_the_recorded_one(cloud: Cloud) -> None:
    create(cloud)
    user = get(cloud, USERS)["items"][0]

    assert {**user, "etag": ""} == {
        "etag": "",
        "host": "%",
        "iamStatus": "IAM_STATUS_UNSPECIFIED",
        "instance": "db",
        "kind": "sql#user",
        "name": "root",
        "passwordPolicy": {"status": {}},
        "project": "acme",
    }


def test_the_root_password_belongs_to_the_engines_own_user(cloud: Cloud) -> None:
    create(cloud, {**MYSQL, "rootPassword": "hunter2"})

    assert cloud.password_matches("acme", "db", "root", "hunter2")
    assert not cloud.password_matches("acme", "db", "root", "hunter3")


def test_a_name_with_two_hosts_is_two_users(cloud: Cloud) -> None:
    create(cloud)
    ok(cloud.call("POST", USERS, {"name": "app", "host": "%", "password": "one"}))
    ok(cloud.call("POST", USERS, {"name": "app", "host": "10.0.0.1", "password": "two"}))
    ok(cloud.call("DELETE", f"{USERS}?name=app&host=%25"))

    assert [(user["name"], user["host"]) for user in get(cloud, USERS)["items"]] == [("root", "%"), ("app", "10.0.0.1")]
    assert cloud.password_matches("acme", "db", "app", "two", host="10.0.0.1")


def test_an_existing_user_cannot_be_created(cloud: Cloud) -> None:
    create(cloud)

    assert refused(cloud.call("POST", USERS, {"name": "root", "host": "%"})) == (409, "alreadyExists")


def test_an_update_changes_what_it_names_and_keeps_the_rest(cloud: Cloud) -> None:
    create(cloud, POSTGRES)
    ok(cloud.call("POST", USERS, {"name": "app", "password": "one", "passwordPolicy": {"allowedFailedAttempts": 3}}))
    ok(cloud.call("PUT", f"{USERS}?name=app", {"name": "app", "password": "two"}))
    after_password = get(cloud, f"{USERS}/app")
    ok(cloud.call("PUT", f"{USERS}?name=app", {"passwordPolicy": {"enableFailedAttemptsCheck": True}}))

    assert after_password["passwordPolicy"] == {"allowedFailedAttempts": 3, "status": {}}
    assert get(cloud, f"{USERS}/app")["passwordPolicy"]["enableFailedAttemptsCheck"] is True
    assert cloud.password_matches("acme", "db", "app", "two")


def test_name_host_and_type_of_a_user_cannot_change(cloud: Cloud) -> None:
    create(cloud)
    answers = [
        cloud.call("PUT", f"{USERS}?name=root&host=%25", change)
        for change in ({"name": "boss"}, {"host": "10.0.0.1"}, {"type": "CLOUD_IAM_USER"})
    ]

    assert {refused(answer) for answer in answers} == {(400, "invalid")}


def test_a_missing_user_is_not_found(cloud: Cloud) -> None:
    create(cloud)

    assert refused(cloud.call("DELETE", f"{USERS}?name=root&host=10.0.0.1")) == (404, "notFound")
    assert refused(cloud.call("PUT", f"{USERS}?name=missing", {"password": "x"})) == (404, "notFound")
    assert refused(cloud.call("DELETE", USERS)) == (400, "required")


def test_mysql_stores_an_iam_user_by_the_part_before_the_at_sign(cloud: Cloud) -> None:
    create(cloud)
    ok(cloud.call("POST", USERS, {"name": "ann@example.com", "type": "CLOUD_IAM_USER"}))
    user = get(cloud, f"{USERS}/ann")

    assert (user["name"], user["type"]) == ("ann", "CLOUD_IAM_USER")


def test_only_mysql_users_have_hosts(cloud: Cloud) -> None:
    create(cloud, POSTGRES)

    assert "has no host" in error_message(cloud.call("POST", USERS, {"name": "app", "host": "%"}))


def test_a_body_with_another_instance_than_the_path_is_refused(cloud: Cloud) -> None:
    create(cloud)

    assert "is not the one in the path" in error_message(
        cloud.call("POST", USERS, {"name": "app", "instance": "other"})
    )


def test_users_of_a_stopped_instance_cannot_be_read(cloud: Cloud) -> None:
    create(cloud, MYSQL, {"settings": {"activationPolicy": "NEVER"}})

    assert "instance is not running" in error_message(cloud.call("GET", USERS))


def test_checking_the_password_of_an_unknown_user_is_an_error(cloud: Cloud) -> None:
    create(cloud)

    with pytest.raises(CloudApiError):
        cloud.password_matches("acme", "db", "missing", "x")
