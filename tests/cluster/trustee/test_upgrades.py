"""Upgrades of owners on children that an old implementation created in a real cluster, which adds defaults."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from setpoint.app import AppSettings, StoreAccess, open_engine, owners
from setpoint.core.values.paths import Path
from setpoint.testing import ChildField
from setpoint.testing.owners.owner_fixture import OwnerFixture
from setpoint.testing.owners.owner_harness import OwnerHarness
from tests.cluster.access import Access
from tests.engine.clock import FakeClock
from tests.engine.owners.owner_fixtures import FIXTURES, KBS, TRUSTEE, field_at
from tests.engine.owners.settings import Scenario
from tests.engine.owners.upgrading import CLAIMS, Claim, Upgrade, otherwise, play_upgrade, with_another
from tests.scenarios.served_kinds import empty, serve_kinds

# The owners of the application: a cluster cannot serve those of tests.
OURS = {(one.group, one.name) for one in owners()}
ON_A_CLUSTER = [one for one in FIXTURES if (one.owner.group, one.owner.name) in OURS]
every_owner = pytest.mark.parametrize("fixture", ON_A_CLUSTER, ids=str)
DEFAULTS = (
    field_at("KbsConfig/tc-kbs-config", Path(("spec", "KbsDeploymentSpec", "replicas")), 2),
    field_at("KbsConfig/tc-kbs-config", Path(("spec", "kbsDeploymentType")), "MicroservicesDeployment"),
    field_at("Service/kbs-service", Path(("spec", "type")), "NodePort"),
    field_at("Deployment/trustee-deployment", Path(("spec", "replicas")), 2),
)


@pytest.fixture(scope="module")
def cluster(api_server: Access) -> Access:
    """The shared API server, which serves our kinds."""
    serve_kinds(api_server)
    return api_server


@pytest.fixture
def emptied(cluster: Access, namespace: str) -> Iterator[str]:
    """A namespace that is emptied after the test."""
    yield namespace
    empty(cluster, namespace)


def play(scenario: Scenario, fixture: OwnerFixture, cluster: Access, namespace: str) -> None:
    """Runs a scenario with the store in the cluster."""

    async def main() -> None:
        settings = AppSettings(f"kubernetes?namespace={namespace}", environment={"KUBECONFIG": str(cluster.kubeconfig)})
        async with open_engine(settings, StoreAccess.WRITE) as engine:
            await scenario(OwnerHarness(_placed(fixture, namespace), engine.store, FakeClock()))

    asyncio.run(main())


def _placed(fixture: OwnerFixture, namespace: str) -> OwnerFixture:
    """The fixture with everything in that namespace."""

    def placed(document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "metadata": {**document["metadata"], "namespace": namespace}}

    return replace(
        fixture,
        manifest=placed(fixture.manifest),
        source=placed(fixture.source),
        rotated=placed(fixture.rotated),
        objects=tuple(map(placed, fixture.objects)),
    )


@every_owner
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__.replace("_", " "))
def test_upgrades(fixture: OwnerFixture, claim: Claim, cluster: Access, emptied: str) -> None:
    play(claim, fixture, cluster, emptied)


@pytest.mark.parametrize("place", DEFAULTS, ids=lambda place: f"{place.key}.{place.path}")
def test_a_default_that_was_changed_and_not_declared_is_named(place: ChildField, cluster: Access, emptied: str) -> None:
    fixture = TRUSTEE if place.key.startswith("KbsConfig/") else KBS

    async def scenario(home: OwnerHarness) -> None:
        owner = home.fixture.owner

        with pytest.raises(AssertionError) as caught:
            await play_upgrade(home, Upgrade(owner, otherwise(owner, with_another(place), 2)))

        assert str(caught.value).startswith(f"read-only: writes: ('{place.key}.{place.path}',)")

    play(scenario, fixture, cluster, emptied)
