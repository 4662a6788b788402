"""Every part of the contract, for the store of the fixture `store`."""

from tests.stores import (
    contract,
    contract_any_kind,
    contract_owning,
    contract_secrets_events_leases,
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


class TestConflicts(contract_owning.Conflicts):
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


class TestSecrets(contract_secrets_events_leases.Secrets):
    pass


class TestEvents(contract_secrets_events_leases.Events):
    pass


class TestLeases(contract_secrets_events_leases.Leases):
    pass
