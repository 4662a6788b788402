"""Notifications of a process that runs controllers: its receivers, what is recorded of them, and their delivery."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from setpoint.app import AppSettings, store_file
from setpoint.clients.http import HttpClient
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import Store
from setpoint.library.controller import Controllers
from setpoint.runtime.notify.ledger import FileStorage, Ledger, LedgerStorage, LedgerStore
from setpoint.runtime.notify.notifier import Delivery, IndexedProblems, Notifier
from setpoint.runtime.notify.receivers import Receiver, receivers_of, signing_secret

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NotificationOptions:
    """Who is told of problems, and the secret that signs what they are told."""

    receivers: tuple[Receiver, ...]
    secret: bytes | None = None

    @staticmethod
    def of(addresses: Sequence[str], secret_file: str | None, environment: Mapping[str, str]) -> "NotificationOptions":
        """The options of a command line and its environment; UserError for a wrong address or secret."""
        return NotificationOptions(receivers_of(addresses, environment), signing_secret(secret_file, environment))


@asynccontextmanager
async def notifying(controllers: Controllers, store: Store, options: NotificationOptions) -> AsyncIterator[None]:
    """Tells the receivers of problems while the controllers run. What is not sent at the end is sent by the next run.

    StoreError when what earlier processes recorded cannot be read.
    """
    manager, clock = controllers.manager, controllers.settings.clock
    world = IndexedProblems(manager.index, manager.replica)
    ledger = Ledger(_storage(store, controllers.settings), world.part_of)
    # A damaged record is an error at the start; in a cluster, shards are read as they are taken.
    if manager.replica is None:
        await ledger.hold(world.held_parts())
    http = HttpClient()
    deliveries = [Delivery(one, world, store.get, http, clock, ledger, options.secret) for one in options.receivers]
    notifier = Notifier(deliveries, world, ledger, clock)
    manager.observer = notifier.handle_event
    controllers.telemetry.watch_notifications(notifier)
    task = asyncio.create_task(notifier.run(manager.synced(), world.held_parts), name="notifications")
    task.add_done_callback(_log_end)
    try:
        yield
    finally:
        manager.observer = None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await http.close()


def _log_end(task: "asyncio.Task[None]") -> None:
    """Resources are reconciled without notifications as well: an error in their delivery ends nothing else."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("notifications ended", exc_info=error)


def _storage(store: Store, settings: AppSettings) -> LedgerStorage | None:
    """In the cluster where the store is there, else beside the file of the store; None for a store in memory."""
    if isinstance(store, LedgerStore):
        return store.ledgers
    file = store_file(settings)
    return None if file is None else FileStorage(file)
