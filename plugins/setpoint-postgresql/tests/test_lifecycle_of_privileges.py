"""Grants and default privileges pass the lifecycle contract of setpoint on a real server."""

from postgres_contract import PostgresContract
from privilege_fixtures import DefaultPrivilegesFixture, GrantFixture


class TestGrant(PostgresContract):
    fixture = GrantFixture


class TestDefaultPrivileges(PostgresContract):
    fixture = DefaultPrivilegesFixture
