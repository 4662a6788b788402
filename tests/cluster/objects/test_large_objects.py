"""Objects nearly as large as etcd accepts: they are applied, edited and corrected, and their status is complete."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import orjson
import pytest

from setpoint.app import AppSettings, StoreAccess, definitions, open_app
from setpoint.core.decide import Decision
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import environment
from tests.cluster.polling import until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SHEETS = "large.test.setpoint.dev"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SHEET: Any = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"sheets.{SHEETS}"},
    "spec": {
        "group": SHEETS,
        "scope": "Namespaced",
        "names": {"plural": "sheets", "singular": "sheet", "kind": "Sheet", "listKind": "SheetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING}}},
            }
        ],
    },
}
# What etcd accepts in one request.
ETCD_BYTES = 1_572_864
PART_BYTES = 350_000
FIELDS = 1_000

Work = Callable[["LargeObject"], Awaitable[None]]


class LargeObject:
    """A KubernetesObject in a cluster, and the Sheet that it declares there."""

    def __init__(self, access: Access, namespace: str, engine: EngineContext) -> None:
        self.access, self.engine = access, engine
        self.namespace = namespace
        self.ref = ResourceRef(GROUP, NAME, namespace, "large")

    async def reconcile(self, spec: Any) -> Settled:
        """Applies the KubernetesObject with this spec of its Sheet, and takes a step."""
        manifest = {"apiVersion": f"{SHEETS}/v1", "kind": "Sheet", "metadata": {"name": "large"}, "spec": spec}
        head = {"apiVersion": f"{GROUP}/v1alpha1", "kind": NAME}
        metadata = {"name": "large", "namespace": self.namespace}
        await self.engine.store.apply({**head, "metadata": metadata, "spec": {"manifest": manifest}})
        return await self.settled()

    async def settled(self) -> Settled:
        """The outcome of a step."""
        outcome = await step(self.ref, self.engine, trigger="a test")
        assert isinstance(outcome, Settled), outcome
        assert outcome.ready.status == "True", outcome
        return outcome

    def drift(self, spec: Any) -> None:
        """Another writer changes the Sheet."""
        answer = self.access.call("PATCH", self._path(SHEETS, "v1", "sheets"), {"spec": spec})
        assert answer.status == 200, answer

    @property
    def sheet(self) -> Any:
        """The Sheet in the cluster."""
        return self.access.call("GET", self._path(SHEETS, "v1", "sheets")).body

    @property
    def resource(self) -> Any:
        """The KubernetesObject in the cluster, in fewer bytes than etcd accepts."""
        found = self.access.call("GET", self._path(GROUP, "v1alpha1", "kubernetesobjects")).body
        assert len(orjson.dumps(found)) < ETCD_BYTES
        return found

    @property
    def record(self) -> Any:
        """The record of the last step, in at most 4,096 bytes."""
        found = self.resource["status"]["setpoint"]["step"]
        assert len(orjson.dumps(found)) <= 4096
        return found

    def _path(self, group: str, version: str, plural: str) -> str:
        return f"/apis/{group}/{version}/namespaces/{self.namespace}/{plural}/large"


def _is_served(access: Access, path: str) -> bool:
    return access.call("GET", path).status == 200


@pytest.fixture
def in_cluster(api_server: Access, namespace: str) -> Callable[[Work], None]:
    """Runs work with a LargeObject on the shared API server."""
    for definition, path in (
        (SHEET, f"/apis/{SHEETS}/v1/sheets"),
        (definitions()[GROUP, NAME], f"/apis/{GROUP}/v1alpha1/kubernetesobjects"),
    ):
        assert api_server.call("POST", DEFINITIONS, definition).status in (201, 409)
        until(partial(_is_served, api_server, path))

    async def opened(work: Work) -> None:
        settings = AppSettings("kubernetes", environment=environment(api_server.kubeconfig))
        async with open_app(settings, StoreAccess.WRITE) as app:
            await work(LargeObject(api_server, namespace, app.engine))

    return lambda work: asyncio.run(opened(work))


def test_an_object_of_1_4_megabytes_is_applied_edited_and_corrected(in_cluster: Callable[[Work], None]) -> None:
    parts = {f"part{number}": str(number) * PART_BYTES for number in range(4)}

    async def lifecycle(one: LargeObject) -> None:
        created = await one.reconcile(parts)
        assert created.plan.decision is Decision.CREATE
        assert one.record["writes"][0]["changes"][0]["shortened"] == ["after"]
        assert len(orjson.dumps(one.sheet["spec"])) > 1_400_000

        edited = await one.reconcile({**parts, "part1": "e" * PART_BYTES})
        assert edited.plan.decision is Decision.INTENT_CHANGED
        assert one.sheet["spec"]["part1"] == "e" * PART_BYTES

        one.drift({"part2": "d" * PART_BYTES})
        corrected = await one.settled()
        assert corrected.plan.decision is Decision.DRIFTED
        assert one.sheet["spec"]["part2"] == "2" * PART_BYTES
        assert (await one.settled()).plan.decision is Decision.IN_SYNC

        (change,) = one.record["writes"][0]["changes"]
        assert (change["path"], change["shortened"]) == ("spec.part2", ["before", "after"])
        assert change["before"].startswith(f'"{"d" * 79}… (350002 bytes, SHA-256 ')
        status = one.resource["status"]
        assert [(found["type"], found["status"]) for found in status["conditions"]] == [("Ready", "True")]
        assert set(status) == {
            "conditions",
            "lastModifiedCookie",
            "object",
            "observedGeneration",
            "output",
            "setpoint",
        }
        assert len(orjson.dumps(status)) < 8192

    in_cluster(lifecycle)


def test_thousands_of_changed_fields_are_counted_and_managed_fields_do_not_list_the_state(
    in_cluster: Callable[[Work], None],
) -> None:
    def fields(value: str) -> Any:
        return {"fields": {f"field{number}": value for number in range(FIELDS)}}

    async def lifecycle(one: LargeObject) -> None:
        await one.reconcile(fields("first"))
        await one.reconcile(fields("second"))
        (write,) = one.record["writes"]
        assert len(write["changes"]) + write["more"] == FIELDS

        for number in range(3):
            one.drift(fields(f"drift {number}"))
            await one.settled()
        one.drift(fields("drift 3"))
        outcome = await step(one.ref, one.engine, trigger="a test")
        assert isinstance(outcome, Settled)
        assert (outcome.ready.reason, outcome.plan.writes) == ("Contested", ())
        status = one.resource["status"]
        assert [(found["path"], found["count"]) for found in status["setpoint"]["contests"]["fields"]] == [
            ("spec.fields", 3)
        ]
        assert "several fields of spec.fields were reverted 3 times" in status["conditions"][1]["message"]
        assert one.record["moreWithheld"] + len(one.record["withheld"]) == FIELDS
        assert len(orjson.dumps(status)) < 12_000
        managers = [found for found in one.resource["metadata"]["managedFields"] if found.get("subresource")]
        assert [found["fieldsV1"]["f:status"]["f:setpoint"] for found in managers] == [{}]

    in_cluster(lifecycle)
