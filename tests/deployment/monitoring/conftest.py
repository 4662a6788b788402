"""Prometheus' programs for the tests of alert rules and the dashboard: without them these are skipped, and say so."""

import os

import pytest

from tests.deployment.monitoring.prometheus_server import PrometheusMissing, program

_REQUIRED = ("CI", "SETPOINT_REQUIRE_PROMETHEUS")


@pytest.fixture
def promtool() -> str:
    """The path of the program."""
    try:
        return program("promtool")
    except PrometheusMissing as missing:
        if any(os.environ.get(name, "0").lower() not in ("", "0", "false") for name in _REQUIRED):
            raise
        pytest.skip(str(missing))
