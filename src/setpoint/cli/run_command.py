"""`setpoint run`: the process that goes on for ever, and does what other commands ask of it meanwhile."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from setpoint.app import Access, Opened, chosen, file_of, open_all, rehearse
from setpoint.cli.glance import StepCount
from setpoint.cli.live_view import TakenDown, drawn
from setpoint.cli.requests import Request, carry_out
from setpoint.cli.states import Exit
from setpoint.clients.daemon_socket import make_way, remove_from
from setpoint.core.durations import seconds_of
from setpoint.engine.resource import Resource, Tree
from setpoint.errors import Bug, UserError
from setpoint.runtime import logs
from setpoint.runtime.control import Control
from setpoint.runtime.control_routes import routes
from setpoint.runtime.manager import Manager
from setpoint.runtime.members import new_identity
from setpoint.runtime.replica import Replica
from setpoint.runtime.server import Address, Server, parse_address
from setpoint.runtime.telemetry import Telemetry

_log: Final = logging.getLogger(__name__)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Orders:
    """The options of the command, checked as far as that goes without a store."""

    kinds: tuple[str, ...]
    concurrency: int
    metrics: Address | None
    form: logs.Format
    level: int
    grace: float
    live: bool
    shards: int
    identity: str

    @staticmethod
    def of(options: Mapping[str, Any]) -> "Orders":
        """The orders that the options of a command line make."""
        metrics, live = options["metrics"], options["live"]
        if live and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UserError("--live draws on a terminal, and this is none: leave it out, and read the log instead")
        return Orders(
            tuple(word.strip() for word in options["kinds"].split(",") if word.strip()),
            options["concurrency"],
            None if metrics is None else parse_address(metrics),
            logs.Format(options["log_format"]),
            logs.LEVELS[options["log_level"]],
            seconds_of(options["grace"]),
            live,
            options["shards"],
            new_identity(options["identity"] or socket.gethostname()),
        )


def run_for_ever(options: dict[str, Any]) -> int:
    """0 after an orderly end, 1 after an error, 128 and the signal when a second one ended it at once."""
    return carry_out(lambda request: _run(request, Orders.of(options)), options)


async def _run(request: Request, orders: Orders) -> int:
    taken_down = TakenDown() if orders.live and sys.stderr.isatty() else None
    form = logs.Format.HUMAN if taken_down is not None and orders.form is logs.Format.AUTO else orders.form
    logs.configure(form, orders.level, taken_down or sys.stderr)
    try:
        async with open_all(replace(request.settings, kinds=orders.kinds), Access.RUN) as opened:
            return await _obey_signals(Process.of(opened, request, orders), orders)
    finally:
        if taken_down is not None:
            sys.stderr.writelines(taken_down.lines)


async def _obey_signals(process: "Process", orders: Orders) -> int:
    """The exit code: the first signal asks for an orderly end, the second ends everything at once."""
    task = asyncio.current_task()
    assert task is not None
    with _signals(process.manager.stop, task.cancel) as heard:
        try:
            async with process.serving(orders.metrics), process.taking_orders(), process.drawn(orders):
                await process.run()
        except asyncio.CancelledError:
            if len(heard) < 2:
                raise
            _log.warning("ended at once")
            return 128 + heard[1]
    _log.info("ended")
    return Exit.DONE


@contextmanager
def _signals(first: Callable[[], object], second: Callable[[], object]) -> Iterator[Sequence[int]]:
    """Those that were heard. After the block, the next one ends the process there and then."""
    loop, heard = asyncio.get_running_loop(), list[int]()

    def hear(number: int) -> None:
        heard.append(number)
        if len(heard) == 1:
            first()
        else:
            second()

    for number in _SIGNALS:
        loop.add_signal_handler(number, hear, number)
    try:
        yield heard
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


@dataclass(frozen=True, slots=True)
class Process:
    """Everything that runs, and what is shown of it."""

    opened: Opened
    request: Request
    manager: Manager
    telemetry: Telemetry
    steps: StepCount

    @staticmethod
    def of(opened: Opened, request: Request, orders: Orders) -> "Process":
        """Ready to run."""
        telemetry = Telemetry([opened.budgets], opened.requests)
        steps = StepCount(telemetry)
        names = chosen(orders.kinds, opened.world.sorts)
        kinds = {name: kind for name, kind in opened.world.kinds.items() if name in names}
        owners = {name: owner for name, owner in opened.world.owners.items() if name in names}
        world = replace(opened.world, kinds=kinds, owners=owners, metrics=steps)
        manager = Manager(world, telemetry, orders.grace, orders.concurrency, replica_for(opened, orders))
        telemetry.watch(manager)
        return Process(opened, request, manager, telemetry, steps)

    async def run(self) -> None:
        """Returns after an orderly end."""
        try:
            await self.manager.run()
        except BaseExceptionGroup as group:
            _log.exception("process broke")
            raise Bug("the process broke: a bug of ours; the log has its traceback") from group

    @asynccontextmanager
    async def serving(self, address: Address | None) -> AsyncIterator[None]:
        """Health and metrics can be read at `address`."""
        server = Server(self.manager, self.telemetry)
        if address is not None:
            await server.start(*address)
        try:
            yield
        finally:
            await server.close()

    @asynccontextmanager
    async def taking_orders(self) -> AsyncIterator[None]:
        """Other commands find this process beside the store; one that is kept in no file has no others."""
        file = file_of(self.request.settings)
        if file is None:
            yield
            return
        control = Control(self.manager.world, self._rehearse, self.manager)
        server = Server(self.manager, self.telemetry, routes(control))
        try:
            await server.start_unix(make_way(file, self.request.settings.environment))
            yield
        finally:
            control.ended.set()
            remove_from(file)
            await server.close()

    @asynccontextmanager
    async def drawn(self, orders: Orders) -> AsyncIterator[None]:
        """Draws on the terminal, if that is wanted."""
        if not orders.live:
            yield
            return
        async with drawn(self.request.console, self.manager, self.steps, self.opened.budgets):
            yield

    async def _rehearse(self, manifest: Tree) -> Resource:
        return await rehearse(manifest, self.manager.world)


def replica_for(opened: Opened, orders: Orders) -> Replica | None:
    """The part of this process among others; None for a store that has room for one only."""
    if opened.shared:
        return Replica(opened.world.store, opened.world.clock, orders.identity, orders.shards)
    if orders.shards > 1:
        raise UserError(
            f"--shards {orders.shards}: one process at a time writes to this store, and looks after everything; "
            "leave it out, or keep the resources in a cluster"
        )
    return None
