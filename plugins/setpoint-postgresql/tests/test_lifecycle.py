"""Each kind passes the lifecycle contract of setpoint on a real server."""

from collections.abc import Callable

import pytest

from postgres_fixtures import (
    DatabaseFixture,
    ExtensionFixture,
    PostgresFixture,
    RoleFixture,
    SchemaFixture,
)
from postgres_server import PostgresServer
from privilege_fixtures import DefaultPrivilegesFixture, GrantFixture
from setpoint.testing import KindContract, KindFixture


class PostgresContract(KindContract):
    """The contract on the server of the tests."""

    @pytest.fixture
    def new_fixture(self, postgres: PostgresServer) -> Callable[[], KindFixture]:
        fixture: type[KindFixture] = self.fixture
        assert issubclass(fixture, PostgresFixture)
        return lambda: fixture(postgres)


class TestRole(PostgresContract):
    fixture = RoleFixture


class TestDatabase(PostgresContract):
    fixture = DatabaseFixture


class TestSchema(PostgresContract):
    fixture = SchemaFixture


class TestExtension(PostgresContract):
    fixture = ExtensionFixture


class TestGrant(PostgresContract):
    fixture = GrantFixture


class TestDefaultPrivileges(PostgresContract):
    fixture = DefaultPrivilegesFixture
