"""The number of hypothesis examples in `make quick`, `make test` and `make laws`, and the plugins of the test suite.

With `CI` in the environment the examples are the same in every run: a change lands or not by what it changes. Elsewhere
they are drawn anew each time.
"""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Assertions outside of test modules explain themselves, too, whichever module imports them first.
pytest.register_assert_rewrite(
    "tests.cluster.objects.upgrade_harness",
    "tests.engine.owners.histories",
    "tests.engine.owners.owner_harness",
    "tests.engine.owners.upgrading",
    "tests.stores.contract",
    "tests.stores.contract_any_kind",
    "tests.stores.contract_owning",
    "tests.stores.contract_secrets_events_leases",
    "tests.stores.contract_updating",
    "tests.stores.contract_watching",
    "tests.terraform.objects.workspace",
)
pytest_plugins = ["tests.cluster.fixtures", "tests.frame_memory", "tests.scheduling", "tests.shared_imports"]

# A shell that starts a program in the background has it ignore Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SLOW_CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large)

# `make quick`; `make test`; `make laws`, outside of tests/laws and in it.
_EXAMPLES = {"glance": 10, "quick": 50, "wide": 1_000, "deep": 20_000}
for _name, _most in _EXAMPLES.items():
    settings.register_profile(
        _name,
        max_examples=_most,
        deadline=None,
        suppress_health_check=_SLOW_CHECKS,
        derandomize=bool(os.environ.get("CI")),
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
