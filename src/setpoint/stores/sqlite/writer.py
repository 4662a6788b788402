"""Group commit: one thread runs all queued writes in one transaction, and answers after the commit."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import StoreError
from setpoint.stores.sqlite.database_file import store_error

T = TypeVar("T")

# The maximum size of a batch, so that its first write does not wait too long.
_MAX_BATCH: Final = 256


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[], Any]
    answer: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Outcome:
    answer: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


def _run(job: _Job) -> _Outcome:
    return _Outcome(job.answer, job.work())


class GroupCommitWriter:
    """Owns `connection`. `tidy` runs at the end of each transaction.

    `committed` runs in the event loop after it, with the results of the writes that are on disk.

    `scrub` runs after each commit, before the callers are answered; `rolled_back` after a write was undone.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        tidy: Callable[[], None],
        committed: Callable[[Sequence[Any]], None],
        *,
        scrub: Callable[[], None] = lambda: None,
        rolled_back: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._tidy = tidy
        self._committed = committed
        self._scrub = scrub
        self._rolled_back = rolled_back
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Job] = []
        self._handed_over: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._is_open = True
        self._ended = asyncio.Event()
        # A daemon: a program that did not close the store can still exit, and the file stays consistent.
        self._thread = threading.Thread(target=self._serve, name=f"writer of {path.name}", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, once it is on disk.

        A caller that is cancelled here does not learn whether the write happened; it did wholly, or not at all.
        """
        if not self._is_open:
            raise StoreError("the store is closed: open it again")
        answer: asyncio.Future[T] = self._loop.create_future()
        if not self._waiting:
            # Not at once: other writes of this turn of the event loop share the transaction.
            self._loop.call_soon(self._hand_over)
        self._waiting.append(_Job(work, answer))
        return await answer

    async def close(self) -> None:
        """Returns when everything queued is on disk and the connection is closed."""
        if self._is_open:
            self._is_open = False
            self._hand_over()
            self._handed_over.put(None)
        await self._ended.wait()
        self._thread.join()

    def _hand_over(self) -> None:
        if self._waiting:
            self._handed_over.put(self._waiting)
            self._waiting = []

    # --- In the thread -------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        is_last = False
        while not is_last:
            batch, is_last = self._next_batch()
            if batch:
                self._post(self._deliver, self._commit(batch))
        with suppress(sqlite3.Error):
            self._scrub()
        self._connection.close()
        self._post(lambda _: self._ended.set(), [])

    def _next_batch(self) -> tuple[list[_Job], bool]:
        """Waits for jobs, then takes all that are queued; True when no more will come."""
        batch: list[_Job] = []
        more = self._handed_over.get()
        while more is not None:
            batch += more
            if len(batch) >= _MAX_BATCH:
                return batch, False
            try:
                more = self._handed_over.get_nowait()
            except Empty:
                return batch, False
        return batch, True

    def _commit(self, batch: list[_Job]) -> list[_Outcome]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            # A job alone needs no savepoint: its failure ends the transaction.
            outcomes = [self._attempt(job) for job in batch] if len(batch) > 1 else [_run(batch[0])]
            self._tidy()
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - raised in the callers; the thread has to go on
            # When even this fails, the next transaction cannot begin, and its callers get that error.
            with suppress(sqlite3.Error):
                self._connection.rollback()
            self._rolled_back()
            return [_Outcome(job.answer, error=self._translated(error)) for job in batch]
        # The writes are on disk, whatever becomes of this: it is tried again after the next commit.
        with suppress(sqlite3.Error):
            self._scrub()
        return outcomes

    def _attempt(self, job: _Job) -> _Outcome:
        """One job in a savepoint of its own: its failure does not affect the rest of the batch."""
        self._connection.execute("SAVEPOINT job")
        try:
            outcome = _run(job)
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite rolled back the whole transaction
            self._connection.execute("ROLLBACK TO job")
            self._rolled_back()
            outcome = _Outcome(job.answer, error=self._translated(error))
        self._connection.execute("RELEASE job")
        return outcome

    def _translated(self, error: Exception) -> Exception:
        """SQLite's errors as StoreErrors, a new one for each caller; anything else as it is."""
        if not isinstance(error, sqlite3.Error):
            return error
        translated = store_error(error, self._path)
        translated.__cause__ = error
        return translated

    def _post(self, function: Callable[[list[_Outcome]], None], outcomes: list[_Outcome]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, outcomes)

    # --- In the event loop ---------------------------------------------------------------------------------------

    def _deliver(self, outcomes: list[_Outcome]) -> None:
        self._committed([outcome.result for outcome in outcomes if outcome.error is None])
        for outcome in outcomes:
            if outcome.answer.done():
                continue
            if outcome.error is None:
                outcome.answer.set_result(outcome.result)
            else:
                outcome.answer.set_exception(outcome.error)
