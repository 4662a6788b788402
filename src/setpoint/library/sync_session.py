"""A session without an event loop of the caller's: for scripts, and for notebooks, whose own loop is running."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future, wait
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from setpoint.app import AppSettings
from setpoint.engine.resource import Revision
from setpoint.errors import UserError
from setpoint.library.declared import DeclaredChange, DeclaredResource, ResourceListing
from setpoint.library.session import FIVE_MINUTES, Session, Timeout
from setpoint.library.targets import Named, Target

if TYPE_CHECKING:
    from setpoint.library.command_record import CommandObserver
    from setpoint.library.inspection.fields import FieldListing
    from setpoint.library.inspection.graph import ResourceGraph
    from setpoint.library.inspection.history import HistoryListing
    from setpoint.library.inspection.live_import import ImportObserver, ImportQuery, LiveImport
    from setpoint.library.inspection.records import EventListing, Inspection, ResourceDescription, StepExplanation
    from setpoint.library.inspection.store_plan import StorePlan
    from setpoint.library.manifests.validation import ManifestValidation
    from setpoint.library.results import CommandResult
    from setpoint.library.sets.listing import SetListing
    from setpoint.library.sets.scope import SetScope
    from setpoint.preview import WorldRecording

T = TypeVar("T")

# The longest time until an interrupt is noticed.
_SIGNAL_SECONDS: Final = 0.5


class SyncSession:
    """The methods of `Session`, each of which returns when it is done. They run in a thread with its own event loop.

    Ctrl-C cancels the call, which has ended when KeyboardInterrupt is raised: what was begun is on record, and a later
    call goes on. Several threads may use one session. Observers are called in the session's own thread.

        with setpoint.open_sync("memory:") as session:
            session.apply(Path("manifests")).raise_for_failures()
    """

    def __init__(self, settings: AppSettings, namespace: str | None = None) -> None:
        self._session = Session(settings, namespace)
        self._loop = asyncio.new_event_loop()
        # A program that ends without `close` is not held up: what was begun is on record.
        self._thread = threading.Thread(target=self._loop.run_forever, name="setpoint session", daemon=True)
        self._closing = threading.Lock()
        self._is_closed = False
        self._watches: set[AsyncGenerator[Any]] = set()
        self._stop = asyncio.Event()
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store and ends the thread; calls of other threads are cancelled. Idempotent."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        self._result_of(self._ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _ended(self) -> None:
        await self._session.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for changes in tuple(self._watches):
            await changes.aclose()
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()

    def __repr__(self) -> str:
        return repr(self._session)

    @property
    def settings(self) -> AppSettings:
        """The settings of the session."""
        return self._session.settings

    def plan(
        self, *what: Named, scope: "SetScope | None" = None, observer: "CommandObserver | None" = None
    ) -> "CommandResult":
        """See Session.plan."""
        return self._call(self._session.plan(*what, scope=scope, observer=observer))

    def import_live(self, query: "ImportQuery", observer: "ImportObserver | None" = None) -> "LiveImport":
        """See Session.import_live."""
        return self._call(self._session.import_live(query, observer))

    def apply(
        self,
        *manifests: Named,
        wait: bool = True,
        timeout: Timeout = FIVE_MINUTES,
        scope: "SetScope | None" = None,
        observer: "CommandObserver | None" = None,
    ) -> "CommandResult":
        """See Session.apply."""
        return self._call(self._session.apply(*manifests, wait=wait, timeout=timeout, scope=scope, observer=observer))

    def reconcile(
        self,
        *what: Named,
        wait: bool = True,
        timeout: Timeout = FIVE_MINUTES,
        observer: "CommandObserver | None" = None,
    ) -> "CommandResult":
        """See Session.reconcile."""
        return self._call(self._session.reconcile(*what, wait=wait, timeout=timeout, observer=observer))

    def wait(
        self, *what: Named, timeout: Timeout = FIVE_MINUTES, observer: "CommandObserver | None" = None
    ) -> "CommandResult":
        """See Session.wait."""
        return self._call(self._session.wait(*what, timeout=timeout, observer=observer))

    def delete(
        self,
        *what: Named,
        dry_run: bool = False,
        ignore_not_found: bool = False,
        wait: bool = True,
        timeout: Timeout = FIVE_MINUTES,
        observer: "CommandObserver | None" = None,
    ) -> "CommandResult":
        """See Session.delete."""
        return self._call(
            self._session.delete(
                *what,
                dry_run=dry_run,
                ignore_not_found=ignore_not_found,
                wait=wait,
                timeout=timeout,
                observer=observer,
            )
        )

    def get(self, target: Target, *, show_secrets: bool = False) -> DeclaredResource:
        """See Session.get."""
        return self._call(self._session.get(target, show_secrets=show_secrets))

    def list(
        self,
        *targets: str,
        all_namespaces: bool = False,
        show_secrets: bool = False,
        ignore_not_found: bool = False,
    ) -> ResourceListing:
        """See Session.list."""
        found = self._session.list(
            *targets, all_namespaces=all_namespaces, show_secrets=show_secrets, ignore_not_found=ignore_not_found
        )
        return self._call(found)

    def describe(self, *what: Named, show_secrets: bool = False) -> "Inspection[ResourceDescription]":
        """See Session.describe."""
        return self._call(self._session.describe(*what, show_secrets=show_secrets))

    def explain(self, *what: Named) -> "Inspection[StepExplanation]":
        """See Session.explain."""
        return self._call(self._session.explain(*what))

    def fields(self, target: Target) -> "FieldListing":
        """See Session.fields."""
        return self._call(self._session.fields(target))

    def history(
        self, target: Target, *, before: int | None = None, most: int = 100, since: str = ""
    ) -> "HistoryListing":
        """See Session.history."""
        return self._call(self._session.history(target, before=before, most=most, since=since))

    def sets(self) -> "SetListing":
        """See Session.sets."""
        return self._call(self._session.sets())

    def events(self, *targets: Target, all_namespaces: bool = False) -> "EventListing":
        """See Session.events."""
        return self._call(self._session.events(*targets, all_namespaces=all_namespaces))

    def validate(self, *manifests: Named) -> "ManifestValidation":
        """See Session.validate."""
        return self._call(self._session.validate(*manifests))

    def graph(self, *what: Named, all_namespaces: bool = False) -> "ResourceGraph":
        """See Session.graph."""
        return self._call(self._session.graph(*what, all_namespaces=all_namespaces))

    def plan_all(
        self,
        *,
        world: str | os.PathLike[str] | None = None,
        variants: Mapping[str, str] | None = None,
        observer: "CommandObserver | None" = None,
    ) -> "StorePlan":
        """See Session.plan_all."""
        return self._call(self._session.plan_all(world=world, variants=variants, observer=observer))

    def record(self, *, observer: "CommandObserver | None" = None) -> "WorldRecording":
        """See Session.record."""
        return self._call(self._session.record(observer=observer))

    def watch(
        self,
        *targets: str,
        since: Revision | None = None,
        all_namespaces: bool = False,
        show_secrets: bool = False,
    ) -> Iterator[DeclaredChange]:
        """See Session.watch. Without `since`, what changes before the first item is asked for is not shown."""
        changes = self._session.watch(*targets, since=since, all_namespaces=all_namespaces, show_secrets=show_secrets)
        yield from self._each(changes)

    def watch_events(
        self, *targets: Target, since: "EventListing | None" = None, all_namespaces: bool = False
    ) -> Iterator["EventListing"]:
        """See Session.watch_events. Without `since`, what is there before the first item is asked for is skipped."""
        yield from self._each(self._session.watch_events(*targets, since=since, all_namespaces=all_namespaces))

    def _each(self, changes: AsyncGenerator[T]) -> Iterator[T]:
        """The items of a watch, until it ends or the session closes."""
        self._watches.add(changes)
        try:
            while (change := self._next_change(changes)) is not None:
                yield change
        finally:
            self._watches.discard(changes)
            if not self._is_closed:
                self._call(changes.aclose())

    def _next_change(self, changes: AsyncGenerator[T]) -> T | None:
        """The next change; None at the end, and when the session closes."""
        try:
            return self._call(_next(changes))
        except (UserError, CancelledError):
            if not self._is_closed:
                raise
            return None

    def run(
        self,
        *,
        metrics: str | None = None,
        admin: bool = False,
        concurrency: int | None = None,
        shards: int = 1,
    ) -> None:
        """See Session.run. Ctrl-C cancels it; `stop`, called by another thread, lets running steps finish."""
        self._stop = asyncio.Event()
        self._call(
            self._session.run(stop=self._stop, metrics=metrics, admin=admin, concurrency=concurrency, shards=shards)
        )

    def stop(self) -> None:
        """Ends `run` in another thread, once its running steps have finished."""
        with self._closing:
            if not self._is_closed:
                self._loop.call_soon_threadsafe(self._stop.set)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, done in the session's thread. UserError once it is closed, and in that thread."""
        problem = "the session is closed: open another one" if self._is_closed else ""
        if threading.current_thread() is self._thread:
            problem = "an observer cannot call its own session, which waits for it: do so when the call has returned"
        if problem:
            work.close()
            raise UserError(problem)
        return self._result_of(work)

    def _result_of(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. When this thread is interrupted, it is cancelled, and has ended before this raises."""
        result: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            task = self._loop.create_task(work)
            task.add_done_callback(lambda done: _pass_on(done, result))
            tasks.append(task)

        self._loop.call_soon_threadsafe(start)
        try:
            # In pieces: not on every system does a signal end a wait.
            while not wait([result], _SIGNAL_SECONDS).done:
                pass
        except BaseException:
            # `start` is called before it.
            self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            wait([result])
            raise
        return result.result()


async def _next(changes: AsyncGenerator[T]) -> T | None:
    """The next change; None at the end."""
    return await anext(changes, None)


def _pass_on(done: asyncio.Task[T], result: Future[T]) -> None:
    if done.cancelled():
        result.set_exception(CancelledError("the session was closed, or the call interrupted"))
    elif (error := done.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(done.result())
