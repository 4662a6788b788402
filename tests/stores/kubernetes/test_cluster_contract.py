"""The contract of stores, in a real cluster."""

import pytest

pytest.register_assert_rewrite(
    "tests.stores.contract", "tests.stores.contract_watching", "tests.stores.contract_keeping"
)

from tests.stores import contract, contract_keeping, contract_watching  # noqa: E402 - after the line above


class TestApplying(contract.Applying):
    pass


class TestRefusing(contract.Refusing):
    pass


class TestAnnotating(contract.Annotating):
    pass


class TestStatus(contract.Status):
    pass


class TestDeleting(contract.Deleting):
    pass


class TestListing(contract.Listing):
    pass


class TestWatching(contract_watching.Watching):
    pass


class TestClosing(contract_watching.Closing):
    pass


class TestSecrets(contract_keeping.Secrets):
    pass


class TestNotes(contract_keeping.Notes):
    pass


class TestLeases(contract_keeping.Leases):
    pass
