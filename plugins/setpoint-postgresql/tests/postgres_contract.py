"""The lifecycle contract of setpoint on the server of the tests."""

from collections.abc import Callable

import pytest

from postgres_fixtures import PostgresFixture
from postgres_server import PostgresServer
from setpoint.testing import KindContract, KindFixture


class PostgresContract(KindContract):
    """The contract on the server of the tests."""

    @pytest.fixture
    def new_fixture(self, postgres: PostgresServer) -> Callable[[], KindFixture]:
        fixture: type[KindFixture] = self.fixture
        assert issubclass(fixture, PostgresFixture)
        return lambda: fixture(postgres)
