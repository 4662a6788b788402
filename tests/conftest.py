"""The number of hypothesis examples in `make quick`, `make test` and `make laws`, and the plugins of the test suite."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Assertions outside of test modules explain themselves, too, whichever module imports them first.
pytest.register_assert_rewrite(
    "tests.cluster.objects.upgrade_harness",
    "tests.engine.owners.histories",
    "tests.engine.owners.owner_harness",
    "tests.engine.owners.upgrading",
    "tests.terraform.objects.workspace",
)
pytest_plugins = ["tests.cluster.fixtures", "tests.scheduling"]

_SLOW_CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large)

# `make quick`; `make test`; `make laws`, outside of tests/laws and in it.
_EXAMPLES = {"glance": 10, "quick": 50, "wide": 1_000, "deep": 20_000}
for _name, _most in _EXAMPLES.items():
    settings.register_profile(_name, max_examples=_most, deadline=None, suppress_health_check=_SLOW_CHECKS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
