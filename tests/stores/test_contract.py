"""The contract, on every store."""

import pytest

pytest.register_assert_rewrite(
    "tests.stores.contract",
    "tests.stores.contract_watching",
    "tests.stores.contract_secrets_events_leases",
    "tests.stores.contract_owning",
    "tests.stores.contract_updating",
    "tests.stores.contract_any_kind",
)

from tests.stores.whole_contract import *  # noqa: E402, F403 - after the line above, and all of it
