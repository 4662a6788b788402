"""Roles and databases pass the lifecycle contract of setpoint on a real server."""

from postgres_contract import PostgresContract
from postgres_fixtures import DatabaseFixture, RoleFixture


class TestRole(PostgresContract):
    fixture = RoleFixture


class TestDatabase(PostgresContract):
    fixture = DatabaseFixture
