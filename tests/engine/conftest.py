"""The claims of the lifecycle contract are not in test modules, and should explain themselves all the same."""

import pytest

pytest.register_assert_rewrite(
    "tests.engine.bench",
    "tests.engine.lifecycle_contested",
    "tests.engine.lifecycle_deleting",
    "tests.engine.lifecycle_failing",
    "tests.engine.lifecycle_fields",
    "tests.engine.lifecycle_keeping",
    "tests.engine.lifecycle_memory",
    "tests.engine.lifecycle_uncontested",
    "tests.engine.lifecycle_upgrading",
    "tests.engine.lifecycle_waiting",
    "tests.engine.meddling",
    "tests.engine.owners.histories",
    "tests.engine.owners.home",
    "tests.engine.upgrades",
)
