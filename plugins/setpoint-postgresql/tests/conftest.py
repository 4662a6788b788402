"""The server that all tests here share. Where there is none, they are skipped; with CI in the environment they fail."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from postgres_server import NoServer, PostgresServer, binaries, running_server

_SLOW_CHECKS = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
if "HYPOTHESIS_PROFILE" not in os.environ and settings.get_current_profile_name() == "default":
    settings.register_profile("plugin", max_examples=50, deadline=None, suppress_health_check=_SLOW_CHECKS)
    settings.load_profile("plugin")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real server, started once."""
    try:
        binaries()
    except NoServer as error:
        if os.environ.get("CI") or os.environ.get("SETPOINT_REQUIRE_POSTGRESQL"):
            raise
        pytest.skip(str(error))
    with running_server() as server:
        yield server
