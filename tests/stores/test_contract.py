"""The contract, on every store."""

from tests.stores.whole_contract import *  # noqa: F403 - all of it
