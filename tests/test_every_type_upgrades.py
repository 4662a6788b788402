"""Every resource type of the application is tested on objects that another implementation of it created."""

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from setpoint.app import definitions, owners
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.testing.claims import upgrading
from setpoint.testing.contract import CHAPTERS
from setpoint.testing.kind_parts import Part
from tests.cluster.objects import upgrade_harness
from tests.cluster.trustee.test_upgrades import ON_A_CLUSTER
from tests.engine.owners.owner_fixtures import FIXTURES
from tests.engine.settings import SETTINGS
from tests.kinds.lifecycle_policies import PartialPolicyFixture, WholePolicyFixture
from tests.kinds.test_policy_members import KIND as MEMBER_KIND
from tests.kinds.test_service_account_keys import KIND as KEY_KIND

Name: TypeAlias = tuple[str, str]
OWNERS: Final = frozenset((one.group, one.name) for one in owners())
KINDS: Final = frozenset(definitions()) - OWNERS - {REFERENCE_GRANT}
# The resource types of each test harness.
TESTED_KINDS: Final = frozenset((one.fixture.ref.group, one.fixture.ref.kind) for one in SETTINGS)
# These have no field that can change: tests/kinds/test_policy_members.py and test_service_account_keys.py upgrade them.
UPGRADED_ELSEWHERE: Final = frozenset({upgrade_harness.KIND, MEMBER_KIND, KEY_KIND})
IN_POLICIES: Final = (PartialPolicyFixture, WholePolicyFixture)
TESTED_OWNERS: Final = frozenset((one.owner.group, one.owner.name) for one in FIXTURES)


def untested(kinds: Iterable[Name], its_owners: Iterable[Name]) -> list[str]:
    """What to do about each resource type without an upgrade test; empty when all have one."""
    return [
        *_instructions(
            kinds,
            {*TESTED_KINDS, *UPGRADED_ELSEWHERE},
            "tests/engine/settings.py, or a harness like tests/cluster/objects/upgrade_harness.py",
        ),
        *_instructions(its_owners, TESTED_OWNERS, "tests/engine/owners/owner_fixtures.py"),
    ]


def _instructions(names: Iterable[Name], tested: Collection[Name], where: str) -> list[str]:
    return [
        f"{name} of {group} has no upgrade test: add it to {where}"
        for group, name in sorted(names)
        if (group, name) not in tested
    ]


def test_every_kind_and_every_owner_has_an_upgrade_test() -> None:
    assert untested(KINDS, OWNERS) == []


def test_a_type_without_an_upgrade_test_is_named_with_what_to_do() -> None:
    found = untested({*KINDS, ("toys.test", "Yoyo")}, {*OWNERS, ("toys.test", "Box")})

    assert found == [
        "Yoyo of toys.test has no upgrade test: add it to "
        "tests/engine/settings.py, or a harness like tests/cluster/objects/upgrade_harness.py",
        "Box of toys.test has no upgrade test: add it to tests/engine/owners/owner_fixtures.py",
    ]


def test_every_kind_with_a_fixture_plays_every_claim_about_upgrades() -> None:
    # What a former implementation made can be tried where there is one.
    claims = [claim for claim in upgrading.CLAIMS if Part.FORMER not in claim.parts]
    assert upgrading in CHAPTERS
    found = {(one.fixture, claim.name) for one in SETTINGS for claim in claims if not claim.fits(one.fixture)}
    # All of a binding is in the spec: nothing in it is left to the service.
    in_policies = {(one, "what is left to the service stays so after an upgrade") for one in IN_POLICIES}
    assert found == in_policies


def test_every_owner_is_upgraded_in_a_real_cluster_too() -> None:
    assert {(one.owner.group, one.owner.name) for one in ON_A_CLUSTER} == OWNERS
