"""A TrusteeConfig and its KbsConfig in the engine, without a cluster: from creation to deletion."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from setpoint.engine.context import EngineContext
from setpoint.engine.owner import Owner
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.kinds.trustee.kbs_config import KbsConfigOwner
from setpoint.kinds.trustee.trustee_config import TrusteeConfigOwner
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.kinds.trustee.trustee_objects import HTTPS, TOKEN

GROUP = "confidentialcontainers.org"
TRUSTEE = ResourceRef(GROUP, "TrusteeConfig", "trust", "tc")
KBS = ResourceRef(GROUP, "KbsConfig", "trust", "tc-kbs-config")
DEPLOYMENT = ResourceRef("apps", "Deployment", "trust", "trustee-deployment")
SETTINGS = ResourceRef("", "ConfigMap", "trust", "tc-kbs-config")
SPEC = {
    "profileType": "Restricted",
    "httpsSpec": {"tlsSecretName": "server"},
    "attestationTokenVerificationSpec": {"tlsSecretName": "token"},
}


class OwnerHarness:
    """A memory store, and an engine with both owners."""

    def __init__(self) -> None:
        clock, numbers = FakeClock(), itertools.count()
        self.store = MemoryStore(clock, lambda: f"00000000-0000-4000-8000-{next(numbers):012}")
        owners: dict[tuple[str, str], Owner] = {
            (GROUP, "TrusteeConfig"): TrusteeConfigOwner(),
            (GROUP, "KbsConfig"): KbsConfigOwner({"OPERATOR_IMAGE_NAME": "operator:1"}),
        }
        self.engine = EngineContext(self.store, clock, {}, owners=owners)

    async def apply(self, **spec: Any) -> None:
        """Applies the TrusteeConfig with this spec."""
        metadata = {"name": "tc", "namespace": "trust"}
        document: dict[str, Any] = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "TrusteeConfig", "metadata": metadata}
        await self.store.apply({**document, "spec": spec})

    async def create_certificates(self) -> None:
        """Creates the Secrets with the certificates."""
        for secret in (HTTPS, TOKEN):
            await self.store.apply(secret)

    async def step_both(self) -> tuple[StepOutcome, StepOutcome]:
        """A step of the TrusteeConfig, of the KbsConfig, and of the TrusteeConfig again; the last two outcomes."""
        await step(TRUSTEE, self.engine)
        kbs = await step(KBS, self.engine)
        return await step(TRUSTEE, self.engine), kbs

    async def roll_out(self) -> None:
        """Sets the status of a Deployment as a cluster does after a rollout."""
        live = await self.get(DEPLOYMENT)
        wanted = live.spec["replicas"]
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), wanted)
        await self.store.update_status(live, {"observedGeneration": live.generation, **counts})

    async def get(self, ref: ResourceRef) -> Resource:
        found = await self.store.get(ref)
        assert found is not None
        return found

    async def edit(self, ref: ResourceRef, change: Callable[[Any], Any]) -> None:
        """Edits a child as a user does."""
        live = await self.get(ref)
        await self.store.replace(live, change(live.document))

    async def revisions(self) -> dict[str, str]:
        return {str(one.ref): one.revision for one in (await self.store.list()).resources}


Scenario: TypeAlias = Callable[[OwnerHarness], Awaitable[None]]


def with_running_trustee(scenario: Scenario) -> None:
    """Runs the scenario in a new harness with a ready TrusteeConfig."""

    async def whole() -> None:
        harness = OwnerHarness()
        await harness.create_certificates()
        await harness.apply(**SPEC)
        await harness.step_both()
        await harness.roll_out()
        await harness.step_both()
        await scenario(harness)

    asyncio.run(whole())


def test_children_are_created_up_to_a_missing_source_and_the_rest_when_it_exists() -> None:
    async def scenario() -> None:
        harness = OwnerHarness()
        await harness.apply(**SPEC)

        first = await step(TRUSTEE, harness.engine)

        assert isinstance(first, Stopped)
        assert "HTTPS secrets: Secret server not found" in str(first.error)
        assert await harness.store.get(SETTINGS) is not None
        assert await harness.store.get(KBS) is None
        await harness.create_certificates()
        trustee, kbs = await harness.step_both()
        assert isinstance(trustee, Settled)
        assert isinstance(kbs, Settled)
        assert (trustee.ready.reason, kbs.ready.reason) == ("NotReady", "RollingOut")
        assert "the controller has not reported yet" in trustee.ready.message
        assert (await harness.get(KBS)).status["isReady"] is False

    asyncio.run(scenario())


def test_it_is_ready_once_the_pods_run_and_then_writes_nothing() -> None:
    async def scenario(harness: OwnerHarness) -> None:
        before = await harness.revisions()

        trustee, kbs = await harness.step_both()

        assert isinstance(trustee, Settled)
        assert isinstance(kbs, Settled)
        assert (trustee.ready.status, kbs.ready.status) == ("True", "True")
        assert ((await harness.get(TRUSTEE)).status["isReady"], (await harness.get(KBS)).status["isReady"]) == (
            True,
            True,
        )
        assert await harness.revisions() == before

    with_running_trustee(scenario)


def test_a_renewed_certificate_reaches_the_pods() -> None:
    async def scenario(harness: OwnerHarness) -> None:
        before = await harness.get(DEPLOYMENT)
        await harness.store.apply({**HTTPS, "data": {"tls.key": "bmV3", "tls.crt": "bmV3"}})

        trustee, kbs = await harness.step_both()

        copied = await harness.get(ResourceRef("", "Secret", "trust", "tc-https-key-secret"))
        assert copied.document["data"] == {"privateKey": "bmV3"}
        after = await harness.get(DEPLOYMENT)
        assert after.spec["template"] != before.spec["template"]
        assert isinstance(kbs, Settled)
        assert kbs.ready.reason == "RollingOut"
        assert isinstance(trustee, Settled)
        assert trustee.ready.status == "False"

    with_running_trustee(scenario)


def test_edits_are_kept_in_editable_fields_and_reverted_in_managed_ones() -> None:
    async def scenario(harness: OwnerHarness) -> None:
        def mine(document: Any) -> Any:
            spec = document["spec"]
            resources = [*spec["kbsSecretResources"], "token"]
            return {**document, "spec": {**spec, "kbsSecretResources": resources, "kbsServiceType": "NodePort"}}

        def scaled(document: Any) -> Any:
            return {**document, "spec": {**document["spec"], "replicas": 5, "minReadySeconds": 3}}

        await harness.edit(KBS, mine)
        await harness.edit(DEPLOYMENT, scaled)

        await harness.step_both()

        spec = (await harness.get(KBS)).spec
        assert spec["kbsSecretResources"] == ["attestation-status", "token"]
        assert "kbsServiceType" not in spec
        live = (await harness.get(DEPLOYMENT)).spec
        assert (live["replicas"], live["minReadySeconds"]) == (1, 3)

    with_running_trustee(scenario)


def test_unreadable_settings_are_reported() -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.edit(SETTINGS, lambda one: {**one, "data": {"kbs-config.toml": "a = \n"}})

        trustee, _ = await harness.step_both()

        assert isinstance(trustee, Settled)
        assert trustee.ready.status == "False"
        assert "kbs-config.toml in ConfigMap trust/tc-kbs-config: it is not TOML" in trustee.ready.message

    with_running_trustee(scenario)


def test_deletion_removes_all_children_and_keeps_other_objects() -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.store.delete(TRUSTEE)

        outcomes = [await harness.step_both() for _ in range(4)]

        assert outcomes[-1] == (Gone(), Gone())
        assert {str(one.ref) for one in (await harness.store.list()).resources} == {
            "Secret trust/server",
            "Secret trust/token",
        }

    with_running_trustee(scenario)
