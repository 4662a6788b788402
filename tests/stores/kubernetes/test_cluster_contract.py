"""The contract of stores, in a real cluster."""

import pytest

pytest.register_assert_rewrite(
    "tests.stores.contract", "tests.stores.contract_watching", "tests.stores.contract_keeping"
)

from tests.stores.whole_contract import *  # noqa: E402, F403 - after the line above, and all of it
