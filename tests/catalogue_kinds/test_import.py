"""For every kind of the catalogue that can list: what is there is imported, the plan is empty, applying writes nothing.

Whole, because all kinds together take two seconds: `make test ARGS="-k test_import"` tries nothing else.
"""

import asyncio

import pytest

from setpoint.catalogue.rows import KindFacts, facts_of
from setpoint.core.unstructured import GroupKind
from setpoint.engine.importing.proof import ImportOutcome
from setpoint.errors import UserError
from setpoint.testing import Part
from tests.catalogue_kinds.contract_run import tried_kinds
from tests.catalogue_kinds.fixtures import fixture_of
from tests.catalogue_kinds.imported import import_once

# No manifest can say what is there, each with the reason.
UNDECLARED = {
    "ComputeSSLCertificate": "needs a certificate and a key, which no service tells",
    "ComputeVPNTunnel": "needs a shared secret, which no service tells",
    "FirestoreBackupSchedule": "the service makes its id, and its spec has no field for one",
    "FirestoreIndex": "the service makes its id, and its spec has no field for one",
    "PubSubSnapshot": "its subscription is required, and no service tells it",
    "VMwareEnginePrivateCloud": "its first cluster is required, and no service tells it",
}


def _can_list(row: KindFacts) -> bool:
    listed = row.methods.get("list")
    is_listed = listed is not None and bool(listed.items)
    return is_listed and Part.LIST not in fixture_of((row.group, row.kind)).without


_LISTED = [name for name in tried_kinds() if _can_list(facts_of(name))]


@pytest.mark.parametrize("name", [one for one in _LISTED if one[1] not in UNDECLARED], ids=lambda one: one[1])
def test_what_is_there_is_declared_as_it_is(name: GroupKind) -> None:
    proven = asyncio.run(import_once(fixture_of(name)))

    assert (proven.outcome, proven.fields, proven.error) == (ImportOutcome.UNCHANGED, (), "")


@pytest.mark.parametrize("kind", sorted(UNDECLARED))
def test_what_no_manifest_can_say_is_told(kind: str) -> None:
    name = next(one for one in _LISTED if one[1] == kind)

    try:
        outcome = asyncio.run(import_once(fixture_of(name))).outcome
    except UserError:
        return
    assert outcome is ImportOutcome.NEEDS_SECRET


def test_most_kinds_can_be_imported() -> None:
    assert len(_LISTED) >= 230
