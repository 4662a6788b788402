"""Databases, and the character sets and collations of each engine."""

import pytest

from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.schema import JsonBody
from tests.localcloud.requests import DB, MYSQL, POSTGRES, create, done, error_message, get, ok, refused

DATABASES = f"{DB}/databases"
ORDERS = f"{DATABASES}/orders"
MYSQL_5_7: JsonBody = {**MYSQL, "databaseVersion": "MYSQL_5_7"}


@pytest.mark.parametrize(
    ("instance", "body", "charset", "collation"),
    [
        (MYSQL, {}, "utf8mb4", "utf8mb4_0900_ai_ci"),
        (MYSQL_5_7, {}, "utf8", "utf8_general_ci"),
        (MYSQL_5_7, {"charset": "utf8mb4"}, "utf8mb4", "utf8mb4_general_ci"),
        (MYSQL, {"charset": "latin1"}, "latin1", "latin1_swedish_ci"),
        (MYSQL, {"collation": "utf8mb4_bin"}, "utf8mb4", "utf8mb4_bin"),
        (POSTGRES, {}, "UTF8", "en_US.UTF8"),
        (POSTGRES, {"collation": "C"}, "UTF8", "C"),
    ],
)
def test_each_engine_has_its_own_defaults(
    cloud: Cloud, instance: JsonBody, body: JsonBody, charset: str, collation: str
) -> None:
    create(cloud, instance)
    ok(cloud.call("POST", DATABASES, {"name": "orders", **body}))

    assert (get(cloud, ORDERS)["charset"], get(cloud, ORDERS)["collation"]) == (charset, collation)


def test_put_and_patch_change_charset_and_collation_on_mysql(cloud: Cloud) -> None:
    create(cloud)
    ok(cloud.call("POST", DATABASES, {"name": "orders", "charset": "latin1"}))
    done(cloud, "PATCH", ORDERS, {"charset": "utf8mb4"})
    patched = get(cloud, ORDERS)
    done(cloud, "PUT", ORDERS, {"name": "orders", "collation": "utf8mb4_bin"})

    assert (patched["charset"], patched["collation"]) == ("utf8mb4", "utf8mb4_0900_ai_ci")
    assert (get(cloud, ORDERS)["charset"], get(cloud, ORDERS)["collation"]) == ("utf8mb4", "utf8mb4_bin")


def test_charset_and_collation_are_immutable_on_postgres(cloud: Cloud) -> None:
    create(cloud, POSTGRES)
    ok(cloud.call("POST", DATABASES, {"name": "orders", "collation": "C"}))
    answer = cloud.call("PUT", ORDERS, {"name": "orders", "collation": "en_US.UTF8"})
    done(cloud, "PUT", ORDERS, {"name": "orders"})

    assert "collation cannot change from C to en_US.UTF8" in error_message(answer)
    assert get(cloud, ORDERS)["collation"] == "C"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"charset": "klingon"}, "Unknown character set"),
        ({"charset": "utf8mb4", "collation": "latin1_bin"}, "is not valid for CHARACTER SET"),
        ({"name": ""}, "Invalid database name"),
        ({"owner": "me"}, 'Unknown name "owner"'),
    ],
)
def test_an_invalid_database_is_refused(cloud: Cloud, body: JsonBody, problem: str) -> None:
    create(cloud)

    assert problem in error_message(cloud.call("POST", DATABASES, {"name": "orders", **body}))


def test_an_existing_database_can_neither_be_created_nor_renamed(cloud: Cloud) -> None:
    create(cloud)
    ok(cloud.call("POST", DATABASES, {"name": "orders"}))

    assert refused(cloud.call("POST", DATABASES, {"name": "orders"})) == (409, "alreadyExists")
    assert "cannot change from orders to other" in error_message(cloud.call("PUT", ORDERS, {"name": "other"}))


def test_a_deleted_database_is_gone_when_the_operation_is_done(cloud: Cloud) -> None:
    create(cloud, POSTGRES)
    ok(cloud.call("POST", DATABASES, {"name": "orders"}))
    ok(cloud.call("DELETE", ORDERS))
    meanwhile = cloud.call("GET", ORDERS).status
    cloud.advance(10)

    assert meanwhile == 200
    assert refused(cloud.call("GET", ORDERS)) == (404, "notFound")
    assert [one["name"] for one in get(cloud, DATABASES)["items"]] == ["postgres"]


def test_the_databases_of_a_missing_instance_are_not_found(cloud: Cloud) -> None:
    assert refused(cloud.call("GET", ORDERS)) == (404, "instanceDoesNotExist")
