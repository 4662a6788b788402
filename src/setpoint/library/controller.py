"""The controllers of a store in this process: the manager, its telemetry, its HTTP endpoints, and the way to it."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from setpoint.app import (
    AppSettings,
    ClientWiring,
    OpenedEngine,
    StoreAccess,
    dry_run_apply,
    open_app,
    select_kinds,
    store_file,
)
from setpoint.clients.admin_api import DeclareRequest, ResourceName, prepare_socket, remove_socket
from setpoint.clients.http import HttpInterceptor
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.deferred_mapping import restricted
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.metrics import StepMetrics
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.reconcile_request import CommandTrigger
from setpoint.engine.step.reports import StepReporter
from setpoint.errors import Bug, SetpointError, UserError
from setpoint.runtime.manager import GRACE_SECONDS, WORKERS_PER_KIND, Manager
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.sharding.assignment import new_identity
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.runtime.step_log import StepLog

# The HTTP server takes 16 MB: it is imported by a process that serves.
if TYPE_CHECKING:
    from setpoint.runtime.admin_api import AdminApi
    from setpoint.runtime.limited_server import ListenAddress

_log: Final = logging.getLogger(__name__)


def _own_identity() -> str:
    return new_identity(socket.gethostname())


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """Which kinds are reconciled, by how many workers each, how a shutdown ends, and which replica this is."""

    # Empty for all of them.
    kinds: Sequence[str] = ()
    concurrency: int = WORKERS_PER_KIND
    grace: float = GRACE_SECONDS
    shards: int = 1
    identity: str = field(default_factory=_own_identity)


@dataclass(frozen=True, slots=True)
class Controllers:
    """The controllers, ready to run: their manager, and what it counts."""

    manager: Manager
    telemetry: Telemetry
    settings: AppSettings

    @staticmethod
    def of(
        opened: OpenedEngine,
        settings: AppSettings,
        options: ControllerOptions,
        telemetry: Telemetry,
        *,
        metrics: StepMetrics | None = None,
        reporter: StepReporter | None = None,
    ) -> "Controllers":
        """The controllers of an opened store; `metrics` counts steps in front of the telemetry."""
        names = select_kinds(options.kinds, opened.engine.resource_types)
        kinds, owners = restricted(opened.engine.kinds, names), restricted(opened.engine.owners, names)
        engine = replace(
            opened.engine, kinds=kinds, owners=owners, metrics=metrics or telemetry, reporter=reporter or StepLog()
        )
        manager = Manager(engine, telemetry, options.grace, options.concurrency, replica_for(opened, options))
        telemetry.watch(manager)
        if options.kinds:
            # Few, and wanted: all of their series are there from the start, so that a rate counts the first step, too.
            manager.add_controllers(engine.resource_types)
        return Controllers(manager, telemetry, settings)

    async def run(self) -> None:
        """Runs the controllers; returns after a graceful shutdown."""
        try:
            await self.manager.run()
        except BaseExceptionGroup as group:
            _log.exception("process broke")
            raise Bug("the process broke: a bug of ours; the log has its traceback") from group

    @asynccontextmanager
    async def serving(self, address: "ListenAddress | None") -> AsyncIterator[None]:
        """Serves health and metrics at `address`, if there is one."""
        if address is None:
            yield
            return
        from setpoint.runtime.server import HttpServer

        server = HttpServer(self.manager, self.telemetry)
        await server.start(*address)
        try:
            yield
        finally:
            await server.close()

    @asynccontextmanager
    async def serving_admin_api(self) -> AsyncIterator[None]:
        """Serves the admin API on a socket beside the store's file, for other processes, if the store has a file."""
        file = store_file(self.settings)
        if file is None:
            yield
            return
        from setpoint.runtime.admin_api import admin_routes
        from setpoint.runtime.server import HttpServer

        admin_api = self.admin_api()
        server = HttpServer(self.manager, self.telemetry, admin_routes(admin_api))
        try:
            await server.start_unix(prepare_socket(file, self.settings.environment))
            yield
        finally:
            admin_api.ended.set()
            remove_socket(file)
            await server.close()

    def admin_api(self) -> "AdminApi":
        """The verbs of other callers: their requests are on record, and the controllers execute them."""
        from setpoint.runtime.admin_api import AdminApi

        return AdminApi(self.manager.engine, self._dry_run, self.manager)

    async def _dry_run(self, manifest: JsonObject) -> Resource:
        return await dry_run_apply(manifest, self.manager.engine)


@asynccontextmanager
async def open_for_controllers(
    settings: AppSettings, interceptor: Callable[[str], HttpInterceptor | None]
) -> AsyncIterator[OpenedEngine]:
    """The engine of a process that runs controllers to its end; `interceptor` is that of each client, by its name."""
    async with open_app(settings, StoreAccess.RUN, ClientWiring(interceptor)) as opened:
        yield opened


def replica_for(opened: OpenedEngine, options: ControllerOptions) -> ControllerReplica | None:
    """This process as one replica of several; None for a store that allows a single process."""
    if opened.shared:
        return ControllerReplica(opened.engine.store, opened.engine.clock, options.identity, options.shards)
    if options.shards > 1:
        raise UserError(
            f"--shards {options.shards}: one process at a time writes to this store, and handles every resource; "
            "leave it out, or keep the resources in a cluster"
        )
    return None


@dataclass(frozen=True, slots=True)
class InProcessLink:
    """The way to controllers of this process, as other processes have one by the admin API."""

    api: "AdminApi"

    async def apply(self, manifests: Iterable[JsonObject]) -> None:
        """See ControllerLink."""
        await self.api.apply(list(manifests))

    async def declare(self, request: DeclareRequest) -> None:
        """See ControllerLink."""
        await self.api.declare(request)

    async def delete(self, names: Iterable[ResourceName]) -> None:
        """See ControllerLink."""
        await self.api.delete([_ref(name) for name in names])

    async def reconcile(self, names: Iterable[ResourceName], command: str = "") -> None:
        """See ControllerLink."""
        trigger = CommandTrigger(command) if command else CommandTrigger.RECONCILE
        await self.api.reconcile([_ref(name) for name in names], trigger)

    async def step_failures(self, names: Iterable[ResourceName]) -> Mapping[ResourceName, SetpointError]:
        """See ControllerLink."""
        found = self.api.failures([_ref(name) for name in names])
        return {ResourceName(*ref): error for ref, error in found.items()}

    async def wait_until_exit(self) -> None:
        """See ControllerLink."""
        await self.api.ended.wait()


def _ref(name: ResourceName) -> ResourceRef:
    return ResourceRef(name.group, name.kind, name.namespace, name.name)


@asynccontextmanager
async def linked(controllers: Controllers) -> AsyncIterator[InProcessLink]:
    """The way to the controllers, for as long as they run."""
    link = InProcessLink(controllers.admin_api())
    try:
        yield link
    finally:
        link.api.ended.set()


async def run_until_stopped_by(stop: asyncio.Event | None, controllers: Controllers) -> None:
    """Runs the controllers until `stop` is set, and then shuts them down in order; without one, until cancelled."""
    if stop is None:
        await controllers.run()
        return

    async def wait_for_stop() -> None:
        await stop.wait()
        controllers.manager.stop()

    stopping = asyncio.create_task(wait_for_stop())
    try:
        await controllers.run()
    finally:
        stopping.cancel()
