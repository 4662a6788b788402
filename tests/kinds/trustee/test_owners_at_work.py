"""A TrusteeConfig and its KbsConfig through the engine, without a cluster: from the first wish to the end."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from setpoint.engine.context import EngineContext, Gone, Settled, StepOutcome, Stopped
from setpoint.engine.owner import Owner
from setpoint.engine.resource import Resource, ResourceRef
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
WISHES = {
    "profileType": "Restricted",
    "httpsSpec": {"tlsSecretName": "server"},
    "attestationTokenVerificationSpec": {"tlsSecretName": "token"},
}


class Site:
    """The store, and both owners at work on it."""

    def __init__(self) -> None:
        clock, numbers = FakeClock(), itertools.count()
        self.store = MemoryStore(clock, lambda: f"00000000-0000-4000-8000-{next(numbers):012}")
        owners: dict[tuple[str, str], Owner] = {
            (GROUP, "TrusteeConfig"): TrusteeConfigOwner(),
            (GROUP, "KbsConfig"): KbsConfigOwner({"OPERATOR_IMAGE_NAME": "operator:1"}),
        }
        self.engine = EngineContext(self.store, clock, {}, owners=owners)

    async def wish(self, **spec: Any) -> None:
        """What the author asks for."""
        metadata = {"name": "tc", "namespace": "trust"}
        document: dict[str, Any] = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "TrusteeConfig", "metadata": metadata}
        await self.store.apply({**document, "spec": spec})

    async def certify(self) -> None:
        """The author creates the certificates."""
        for secret in (HTTPS, TOKEN):
            await self.store.apply(secret)

    async def look(self) -> tuple[StepOutcome, StepOutcome]:
        """A step of each; the second of the first, once the other one is done."""
        await step(TRUSTEE, self.engine)
        kbs = await step(KBS, self.engine)
        return await step(TRUSTEE, self.engine), kbs

    async def roll_out(self) -> None:
        """What a cluster does with a Deployment."""
        live = await self.get(DEPLOYMENT)
        wanted = live.spec["replicas"]
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), wanted)
        await self.store.update_status(live, {"observedGeneration": live.generation, **counts})

    async def get(self, ref: ResourceRef) -> Resource:
        found = await self.store.get(ref)
        assert found is not None
        return found

    async def edit(self, ref: ResourceRef, change: Callable[[Any], Any]) -> None:
        """A user edits a child."""
        live = await self.get(ref)
        await self.store.replace(live, change(live.document))

    async def revisions(self) -> dict[str, str]:
        return {str(one.ref): one.revision for one in (await self.store.list()).resources}


Scene: TypeAlias = Callable[[Site], Awaitable[None]]


def play(context: Scene) -> None:
    """The scene, on a site of its own that is up and running."""

    async def whole() -> None:
        site = Site()
        await site.certify()
        await site.wish(**WISHES)
        await site.look()
        await site.roll_out()
        await site.look()
        await context(site)

    asyncio.run(whole())


def test_it_gets_as_far_as_it_can_and_on_when_the_rest_comes() -> None:
    async def context() -> None:
        site = Site()
        await site.wish(**WISHES)

        first = await step(TRUSTEE, site.engine)

        assert isinstance(first, Stopped)
        assert "HTTPS secrets: Secret server not found" in str(first.error)
        assert await site.store.get(SETTINGS) is not None
        assert await site.store.get(KBS) is None
        await site.certify()
        trustee, kbs = await site.look()
        assert isinstance(trustee, Settled)
        assert isinstance(kbs, Settled)
        assert (trustee.ready.reason, kbs.ready.reason) == ("NotReady", "RollingOut")
        assert "the controller has not reported yet" in trustee.ready.message
        assert (await site.get(KBS)).status["isReady"] is False

    asyncio.run(context())


def test_it_is_ready_once_the_pods_run_and_then_nothing_moves() -> None:
    async def context(site: Site) -> None:
        before = await site.revisions()

        trustee, kbs = await site.look()

        assert isinstance(trustee, Settled)
        assert isinstance(kbs, Settled)
        assert (trustee.ready.status, kbs.ready.status) == ("True", "True")
        assert ((await site.get(TRUSTEE)).status["isReady"], (await site.get(KBS)).status["isReady"]) == (True, True)
        assert await site.revisions() == before

    play(context)


def test_a_renewed_certificate_reaches_the_pods() -> None:
    async def context(site: Site) -> None:
        before = await site.get(DEPLOYMENT)
        await site.store.apply({**HTTPS, "data": {"tls.key": "bmV3", "tls.crt": "bmV3"}})

        trustee, kbs = await site.look()

        copied = await site.get(ResourceRef("", "Secret", "trust", "tc-https-key-secret"))
        assert copied.document["data"] == {"privateKey": "bmV3"}
        after = await site.get(DEPLOYMENT)
        assert after.spec["template"] != before.spec["template"]
        assert isinstance(kbs, Settled)
        assert kbs.ready.reason == "RollingOut"
        assert isinstance(trustee, Settled)
        assert trustee.ready.status == "False"

    play(context)


def test_edits_are_kept_in_editable_fields_and_reverted_in_managed_ones() -> None:
    async def context(site: Site) -> None:
        def mine(document: Any) -> Any:
            spec = document["spec"]
            resources = [*spec["kbsSecretResources"], "token"]
            return {**document, "spec": {**spec, "kbsSecretResources": resources, "kbsServiceType": "NodePort"}}

        def scaled(document: Any) -> Any:
            return {**document, "spec": {**document["spec"], "replicas": 5, "minReadySeconds": 3}}

        await site.edit(KBS, mine)
        await site.edit(DEPLOYMENT, scaled)

        await site.look()

        spec = (await site.get(KBS)).spec
        assert spec["kbsSecretResources"] == ["attestation-status", "token"]
        assert "kbsServiceType" not in spec
        live = (await site.get(DEPLOYMENT)).spec
        assert (live["replicas"], live["minReadySeconds"]) == (1, 3)

    play(context)


def test_unreadable_settings_are_reported() -> None:
    async def context(site: Site) -> None:
        await site.edit(SETTINGS, lambda one: {**one, "data": {"kbs-config.toml": "a = \n"}})

        trustee, _ = await site.look()

        assert isinstance(trustee, Settled)
        assert trustee.ready.status == "False"
        assert "kbs-config.toml in ConfigMap trust/tc-kbs-config: it is not TOML" in trustee.ready.message

    play(context)


def test_everything_goes_with_it_and_what_others_made_stays() -> None:
    async def context(site: Site) -> None:
        await site.store.delete(TRUSTEE)

        outcomes = [await site.look() for _ in range(4)]

        assert outcomes[-1] == (Gone(), Gone())
        assert {str(one.ref) for one in (await site.store.list()).resources} == {
            "Secret trust/server",
            "Secret trust/token",
        }

    play(context)
