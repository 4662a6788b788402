"""Gadgets in one store, and their transfer into another: everything has been text in between."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from setpoint.app import dry_run_apply
from setpoint.core.plan import Plan
from setpoint.core.values.canonical import canonical
from setpoint.core.values.paths import Path
from setpoint.core.values.yaml_documents import YamlDocument
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Reconciliation
from setpoint.engine.management import CookieLocation
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import StepOutcome
from setpoint.engine.step.reconcile import preview, step
from setpoint.engine.transfer.export_format import ExportHeader, StoreExport, export_documents, read_export
from setpoint.engine.transfer.exporter import gather_export
from setpoint.engine.transfer.importer import CheckedImport, ImportedResource, check_import
from setpoint.errors import SetpointError
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref

HEADER = ExportHeader("0.1.0", "2026-01-01T00:00:00Z", "memory", secrets=True, paused=False)
SECRET = ResourceRef("", "Secret", "default", "s")


def new_store(clock: FakeClock, name: str = "uid") -> MemoryStore:
    """An empty store with uids of its own."""
    numbers = count(1)
    return MemoryStore(clock, lambda: f"{name}-{next(numbers)}")


@dataclass(slots=True)
class TransferHarness:
    """Gadgets, where they are kept, and the service that they live in."""

    store: Store
    clock: FakeClock
    service: Service = field(default_factory=Service)
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    cookies: CookieLocation = CookieLocation.STATUS
    revision: int = 1

    @property
    def engine(self) -> EngineContext:
        kind = GadgetKind(self.service, self.reconciliation, self.revision)
        return EngineContext(self.store, self.clock, {(kind.group, kind.name): kind}, self.cookies)

    async def apply(self, name: str, spec: Mapping[str, Any], **metadata: Any) -> None:
        await self.store.apply(gadget(name, dict(spec), **metadata))

    async def secret(self, text: str) -> None:
        metadata = {"name": SECRET.name, "namespace": SECRET.namespace}
        data = {"password": text}
        await self.store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})

    async def step(self, name: str) -> StepOutcome:
        self.clock.seconds += 1
        return await step(gadget_ref(name), self.engine)

    async def settle(self, *names: str) -> None:
        for name in names:
            await self.step(name)

    async def resource(self, name: str) -> Resource:
        found = await self.store.get(gadget_ref(name))
        assert found is not None
        return found

    async def gadgets(self) -> list[Resource]:
        return [one for one in (await self.store.list()).resources if one.ref.kind == "Gadget"]

    async def plans(self) -> dict[str, Any]:
        """What the next step of each would do, or be stopped by."""
        return {one.ref.name: await self._plan(one.ref) for one in await self.gadgets()}

    async def _plan(self, ref: ResourceRef) -> Any:
        try:
            found: Plan | SetpointError = await preview(ref, self.engine)
        except SetpointError as error:
            found = error
        return found.to_data() if isinstance(found, Plan) else (type(found).__name__, str(found))

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self.service.calls if call[0] != "get"]


async def export_of(harness: TransferHarness, *, with_secrets: bool = True, names: Sequence[str] = ()) -> StoreExport:
    """What is handed over, once it was text."""
    gadgets = [one for one in await harness.gadgets() if not names or one.ref.name in names]
    secrets, resources = await gather_export(gadgets, harness.engine)
    return reread(StoreExport((HEADER,), secrets if with_secrets else (), resources))


def reread(export: StoreExport) -> StoreExport:
    """The export as it is read from a file, a document on each line."""
    trees = [json.loads(canonical(tree)) for tree in export_documents(export)]
    return read_export([YamlDocument(tree, "e.json", {Path(): line}) for line, tree in enumerate(trees, 1)])


async def checked_in(harness: TransferHarness, export: StoreExport, *, overwrite: bool = False) -> CheckedImport:
    """The import, about to begin."""
    return await check_import(
        export, harness.engine, lambda tree: dry_run_apply(tree, harness.engine), overwrite=overwrite
    )


async def bring(
    harness: TransferHarness, export: StoreExport, *, overwrite: bool = False
) -> tuple[ImportedResource, ...]:
    """The import, from its checks to its end."""
    return await (await checked_in(harness, export, overwrite=overwrite)).run_import()


async def moved(old: TransferHarness, store: Store | None = None, *, with_secrets: bool = True) -> TransferHarness:
    """The house that everything was moved to, at the same service."""
    new = TransferHarness(store or new_store(old.clock, "new"), old.clock, old.service, old.reconciliation, old.cookies)
    await bring(new, await export_of(old, with_secrets=with_secrets))
    return new
