"""Reads and changes policies. Reads at the same time are one; changes of one policy are sent together.

A change reads the policy, changes only what it is about, and sends the policy with the etag that it came with; when
another writer was faster, it reads again. The first few changes of a policy are sent at once. While more arrive, they
are collected into a batch, which is sent when it is full or when none arrives for a moment; until then the caller has
the name of the batch, and polls it. A batch lives in this process: of one that is not known, an observation decides.
"""

import asyncio
import random
import uuid
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import field
from functools import cached_property
from typing import Any, Final, NamedTuple

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleClient, GoogleTenant, item_name, list_pages
from setpoint.clients.response_bodies import decode_object
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import ProjectRefused, RemoteConflict, RemoteRefused, RemoteUnavailable, SetpointError
from setpoint.kinds.gcp.iam.grants import Grant, changed_policy, grants_in
from setpoint.kinds.gcp.iam.targets import PolicyTarget

# How often a change is tried while other writers are faster; the delays between grow from the first.
_MOST_TRIES: Final = 5
_FIRST_DELAY: Final = 0.05
# How many batches that ended are kept for those that did not ask yet.
_MOST_BATCHES: Final = 1000
_INVALID: Final = 400


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """When changes of one policy are collected, and for how long."""

    # So many changes of one policy within a second are sent at once each; further ones are collected.
    at_once: int = 4
    # A batch of so many is sent; so is one to which none was added for so many seconds.
    full: int = 1000
    quiet_seconds: float = 1.0
    # After so many reads of one policy within a second, a policy that was read so many seconds ago counts as read now.
    reads: int = 20
    stale_seconds: float = 2.0


class PolicyDocument:
    """A policy as the service reports it."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body

    @property
    def etag(self) -> str:
        """The version of the policy."""
        return str(self.body.get("etag") or "")

    @cached_property
    def grants(self) -> frozenset[Grant]:
        """Everything that it grants."""
        return grants_in(self.body.get("bindings") or ())

    @cached_property
    def by_name(self) -> Mapping[tuple[str, str, str], Grant]:
        """The grants by role, member and digest of the condition."""
        return {(one.role, one.member, one.condition_digest): one for one in self.grants}


class GrantChange(NamedTuple):
    """Grants to add, and grants to remove."""

    add: Collection[Grant] = ()
    remove: Collection[Grant] = ()


@dataclass(slots=True)
class GrantBatch:
    """Changes of one policy that are sent together, and what became of each."""

    changes: list[GrantChange] = field(default_factory=list)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    is_full: asyncio.Event = field(default_factory=asyncio.Event)
    # Of each change, once it was sent: the error, if it failed.
    outcomes: dict[int, SetpointError | None] = field(default_factory=dict)


class _Recent:
    """When something happened lately."""

    def __init__(self, most: int) -> None:
        self._times: deque[float] = deque(maxlen=max(most, 1))

    def happened(self, now: float) -> bool:
        """Notes that it happens now; whether it happened the most times within the last second before."""
        is_often = len(self._times) == self._times.maxlen and now - self._times[0] < 1
        self._times.append(now)
        return is_often


@dataclass(slots=True)
class _KnownPolicy:
    """What this process knows of one policy, and what is under way."""

    reads: _Recent
    changes: _Recent
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    # The policy as it was read or written last, and when that began.
    document: PolicyDocument | None = None
    since: float = -1.0
    # A read, or a write, that has not been sent: what is asked for at the same time joins it.
    reading: "asyncio.Future[PolicyDocument | None] | None" = None
    joining: "tuple[list[GrantChange], asyncio.Future[PolicyDocument]] | None" = None
    batch: GrantBatch | None = None


class PolicyClient:
    """The policies of one caller."""

    def __init__(self, google: GoogleClient, caller: GoogleTenant, settings: BatchSettings) -> None:
        self._google = google
        self._caller = caller
        self._settings = settings
        self._known: dict[PolicyTarget, _KnownPolicy] = {}
        self._batches: dict[str, GrantBatch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._own_buckets: set[str] = set()

    def _of(self, target: PolicyTarget) -> _KnownPolicy:
        found = self._known.get(target)
        if found is None:
            settings = self._settings
            found = self._known[target] = _KnownPolicy(_Recent(settings.reads), _Recent(settings.at_once))
        return found

    # --- Reads --------------------------------------------------------------------------------------------------------

    async def read(self, target: PolicyTarget) -> PolicyDocument | None:
        """The policy; None when there is no such object."""
        known, now = self._of(target), asyncio.get_running_loop().time()
        if known.reads.happened(now) and known.since >= 0 and now - known.since < self._settings.stale_seconds:
            return known.document
        if known.reading is not None:
            return await asyncio.shield(known.reading)
        future: asyncio.Future[PolicyDocument | None] = asyncio.get_running_loop().create_future()
        known.reading = future
        async with _answering(future):
            try:
                # What is asked for meanwhile is answered by the same read.
                await asyncio.sleep(0)
            finally:
                known.reading = None
            future.set_result(await self._read_now(target))
        return await future

    async def require(self, target: PolicyTarget) -> Mapping[str, Any]:
        """The policy; RemoteRefused when there is no such object."""
        found = await self.read(target)
        if found is None:
            raise RemoteRefused(f"{target.name} does not exist: create it, or correct spec.resourceRef")
        return found.body

    async def _read_now(self, target: PolicyTarget) -> PolicyDocument | None:
        known, since = self._of(target), asyncio.get_running_loop().time()
        if target.bucket:
            await self._require_own(target.bucket)
        call, body = target.reading()
        answer = await (self._google.get(call) if body is None else self._google.query(call, body))
        document = None if answer is None else _document(answer, target)
        if since >= known.since:
            known.document, known.since = document, since
        return document

    async def _require_own(self, bucket: str) -> None:
        """ProjectRefused for a bucket that is not in the project of the tenant: its name says nothing about that."""
        project = self._caller.project
        if project is None or bucket in self._own_buckets:
            return
        call = GoogleCall(GoogleService.STORAGE, ("b",), {"project": project, "prefix": bucket})
        async with aclosing(list_pages(self._google, call, f"the buckets of project {project}")) as pages:
            async for page in pages:
                self._own_buckets |= {name for one in page if (name := item_name(one, "a bucket")) == bucket}
        if bucket not in self._own_buckets:
            raise ProjectRefused(
                f"the bucket {bucket} is not in the project {project!r}, which is that of the namespace: name another"
            )

    # --- Writes -------------------------------------------------------------------------------------------------------

    async def replace(self, target: PolicyTarget, policy: Mapping[str, Any], mask: str = "") -> PolicyDocument:
        """The policy after it was set to this one. RemoteConflict when it has changed since it was read."""
        async with self._of(target).lock:
            return await self._write_now(target, policy, mask)

    async def change(self, target: PolicyTarget, change: GrantChange) -> PolicyDocument | str:
        """The policy after the change; or the name of the batch that the change is part of."""
        known = self._of(target)
        is_often = known.changes.happened(asyncio.get_running_loop().time())
        return self._collect(target, change) if is_often or known.batch else await self.change_now(target, change)

    async def change_now(self, target: PolicyTarget, change: GrantChange) -> PolicyDocument:
        """The policy after the change, and after those that were asked for at the same time."""
        known = self._of(target)
        if known.joining is not None:
            changes, future = known.joining
            changes.append(change)
            return await asyncio.shield(future)
        changes, future = [change], asyncio.get_running_loop().create_future()
        known.joining = (changes, future)
        async with _answering(future):
            try:
                await known.lock.acquire()
            finally:
                known.joining = None
            try:
                future.set_result(await self._send(target, changes))
            finally:
                known.lock.release()
        return await future

    async def _send(self, target: PolicyTarget, changes: Sequence[GrantChange]) -> PolicyDocument:
        """The policy after all these changes; RemoteConflict when other writers are always faster."""
        add = {grant for one in changes for grant in one.add}
        remove = {grant for one in changes for grant in one.remove}
        for tries in range(_MOST_TRIES):
            before = await self._read_now(target)
            if before is None:
                raise RemoteRefused(f"{target.name} does not exist: create it, or correct spec.resourceRef")
            if before.grants >= add and not before.grants & (remove - add):
                return before
            try:
                return await self._write_now(target, changed_policy(before.body, add, remove))
            except RemoteConflict:
                if tries == _MOST_TRIES - 1:
                    raise
            await asyncio.sleep(_FIRST_DELAY * 2**tries * random.uniform(0.5, 1))
        raise AssertionError

    async def _write_now(self, target: PolicyTarget, policy: Mapping[str, Any], mask: str = "") -> PolicyDocument:
        known, since = self._of(target), asyncio.get_running_loop().time()
        verb, call, body = target.writing(policy, mask)
        answer = await (self._google.put(call, body) if verb == "PUT" else self._google.post(call, body))
        known.document, known.since = _document(answer, target), since
        return known.document

    # --- Batches ------------------------------------------------------------------------------------------------------

    def _collect(self, target: PolicyTarget, change: GrantChange) -> str:
        """The name of the change in the batch of its policy."""
        known = self._of(target)
        if known.batch is None:
            known.batch = GrantBatch()
            self._keep(known.batch)
            task = asyncio.get_running_loop().create_task(self._send_batch(target, known.batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        batch = known.batch
        batch.changes.append(change)
        if len(batch.changes) >= self._settings.full:
            batch.is_full.set()
            known.batch = None
        return f"{batch.name}/{len(batch.changes) - 1}"

    def _keep(self, batch: GrantBatch) -> None:
        self._batches[batch.name] = batch
        ended = [name for name, one in self._batches.items() if len(one.outcomes) == len(one.changes)]
        for name in ended[:-_MOST_BATCHES]:
            del self._batches[name]

    async def _send_batch(self, target: PolicyTarget, batch: GrantBatch) -> None:
        known = self._of(target)
        while not batch.is_full.is_set():
            before = len(batch.changes)
            try:
                await asyncio.wait_for(batch.is_full.wait(), self._settings.quiet_seconds)
            except TimeoutError:
                if len(batch.changes) == before:
                    break
        async with known.lock:
            if known.batch is batch:
                known.batch = None
            await self._send_parts(target, batch, range(len(batch.changes)))

    async def _send_parts(self, target: PolicyTarget, batch: GrantBatch, part: Sequence[int]) -> None:
        """Sends these changes; those that the service refuses together are sent by halves, until it is known which."""
        error: SetpointError | None = None
        try:
            await self._send(target, [batch.changes[one] for one in part])
        except SetpointError as found:
            error = found
        is_invalid = isinstance(error, RemoteRefused) and error.status == _INVALID
        if is_invalid and len(part) > 1:
            middle = len(part) // 2
            await self._send_parts(target, batch, part[:middle])
            await self._send_parts(target, batch, part[middle:])
            return
        batch.outcomes.update(dict.fromkeys(part, error))

    def is_sent(self, name: str) -> bool:
        """Whether the change of this name was sent, or is not known here; RemoteRefused when it was refused.

        After any other failure it counts as sent: what the object is then, an observation shows.
        """
        batch_name, _, place = name.partition("/")
        batch = self._batches.get(batch_name)
        if batch is None or not place.isdecimal():
            return True
        error = batch.outcomes.get(int(place))
        if isinstance(error, RemoteRefused):
            raise RemoteRefused(str(error), error.status)
        return int(place) in batch.outcomes or int(place) >= len(batch.changes)


def _document(answer: bytes, target: PolicyTarget) -> PolicyDocument:
    return PolicyDocument(decode_object(answer, target.name))


@asynccontextmanager
async def _answering(future: "asyncio.Future[Any]") -> AsyncIterator[None]:
    """Others wait for the future: it gets the error that is raised inside, also when the caller is cancelled."""
    try:
        yield
    except BaseException as error:
        if not future.done():
            is_ours = isinstance(error, SetpointError)
            future.set_exception(error if is_ours else RemoteUnavailable("the request of another resource was stopped"))
            # The others may all be gone.
            future.exception()
        raise


@dataclass(slots=True)
class PolicyClients:
    """The clients of a process, by caller: kinds that live in policies share them."""

    settings: BatchSettings = field(default_factory=BatchSettings)
    _clients: dict[GoogleTenant, PolicyClient] = field(default_factory=dict)

    def of(self, google: GoogleClient, caller: GoogleTenant) -> PolicyClient:
        """The client for a caller."""
        found = self._clients.get(caller)
        if found is None:
            found = self._clients[caller] = PolicyClient(google, caller, self.settings)
        return found
