"""Every part of the contract, for whoever has a store: the fixture `store` is theirs."""

from tests.stores import (
    contract,
    contract_any_kind,
    contract_keeping,
    contract_owning,
    contract_updating,
    contract_watching,
)


class TestApplying(contract.Applying):
    pass


class TestRefusing(contract.Refusing):
    pass


class TestAnnotating(contract.Annotating):
    pass


class TestStatus(contract.Status):
    pass


class TestUpdating(contract_updating.Updating):
    pass


class TestRefusedUpdates(contract_updating.RefusedUpdates):
    pass


class TestWritingChildren(contract_updating.WritingChildren):
    pass


class TestCreating(contract_owning.Creating):
    pass


class TestReplacing(contract_owning.Replacing):
    pass


class TestLosing(contract_owning.Losing):
    pass


class TestAnyKind(contract_any_kind.AnyKind):
    pass


class TestNoNamespace(contract_any_kind.NoNamespace):
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
