"""The contract of stores, in a real cluster."""

from tests.stores.whole_contract import *  # noqa: F403 - all of it
