"""The actors of a soak: the author, another writer, and the fault injector."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from setpoint.clients.admin_api import AdminClient, ResourceName
from setpoint.core.values.paths import Path, set_at
from setpoint.errors import NotReady, RemoteUnavailable, StoreError
from setpoint.localcloud.faults import (
    AddLatency,
    DropConnection,
    FailOperation,
    FailRequest,
    Fault,
    FaultTiming,
    LimitRequests,
)
from soak.catalogue_subjects import CatalogueSubject
from soak.cloud import SoakCloud
from soak.process import Process
from soak.subjects import Subject

_BATCH_SIZE: Final = 50
AnySubject: TypeAlias = Subject | CatalogueSubject


@dataclass(slots=True)
class Author:
    """Declares, edits and deletes. Acknowledged manifests are in `declared`; any other request is repeated."""

    process: Process
    cloud: SoakCloud
    draw: random.Random
    declared: dict[AnySubject, dict[str, Any]] = field(default_factory=dict)
    edits: int = 0
    is_stopping: bool = False

    async def declare_all(self, subjects: tuple[AnySubject, ...]) -> None:
        """Everything, at the start."""
        for start in range(0, len(subjects), _BATCH_SIZE):
            some = {subject: subject.manifest(self.draw) for subject in subjects[start : start + _BATCH_SIZE]}
            await self._send(partial(_apply, tuple(some.values())))
            self.cloud.wanted |= {subject.object for subject in some}
            self.declared |= some

    async def edit(self, subjects: tuple[AnySubject, ...], pause: float) -> None:
        """One edit after the other, until `is_stopping`: what was begun is acknowledged before it ends."""
        while not self.is_stopping:
            subject = self.draw.choice(subjects)
            if subject in self.declared and self.draw.random() < 0.1:
                await self._delete(subject)
            else:
                await self._apply(subject)
            self.edits += 1
            await asyncio.sleep(pause)

    async def request_reconciles(self) -> None:
        """Requests a reconcile of everything that is declared."""
        names = [_name(subject) for subject in self.declared]
        for start in range(0, len(names), _BATCH_SIZE):
            await self._send(partial(_reconcile, tuple(names[start : start + _BATCH_SIZE])))

    async def _apply(self, subject: AnySubject) -> None:
        manifest = subject.manifest(self.draw)
        is_new = subject not in self.declared
        try:
            await self._send(partial(_apply, (manifest,)))
        except NotReady:
            # It is still being deleted, as it was asked to be.
            assert is_new, subject
            return
        self.cloud.wanted.add(subject.object)
        self.declared[subject] = manifest

    async def _delete(self, subject: AnySubject) -> None:
        self.cloud.wanted.discard(subject.object)
        await self._send(partial(_delete, _name(subject)))
        del self.declared[subject]

    async def _send(self, order: Callable[[AdminClient], Awaitable[None]]) -> None:
        """Until it is acknowledged: every order can be given twice."""
        while True:
            daemon = await self.process.reached()
            try:
                await order(daemon)
                return
            except (RemoteUnavailable, StoreError):
                await asyncio.sleep(0.05)
            finally:
                await daemon.close()


async def _apply(manifests: tuple[dict[str, Any], ...], daemon: AdminClient) -> None:
    await daemon.apply(manifests)


async def _delete(name: ResourceName, daemon: AdminClient) -> None:
    await daemon.delete([name])


async def _reconcile(names: tuple[ResourceName, ...], daemon: AdminClient) -> None:
    await daemon.reconcile(names)


def _name(subject: AnySubject) -> ResourceName:
    return ResourceName(subject.group, subject.kind, "default", subject.name)


@dataclass(slots=True)
class OtherWriter:
    """Another writer: changes live objects; never the same value twice in one field, which would be an oscillation."""

    cloud: SoakCloud
    draw: random.Random
    changes: int = 0

    async def write_until_cancelled(self, subjects: tuple[AnySubject, ...], pause: float) -> None:
        """One change after the other."""
        others = [one for one in subjects if isinstance(one, CatalogueSubject) or one.kind == "StorageBucket"]
        while True:
            self._write(self.draw.choice(others))
            await asyncio.sleep(pause)

    def _write(self, subject: AnySubject) -> None:
        if subject.object not in self.cloud.objects() or _is_busy(subject, self.cloud):
            return
        self.changes += 1
        if self.draw.random() < 0.03:
            self.cloud.delete_as_other_writer(subject.object)
            return
        self.cloud.edit(self.cloud.path_of(subject.path, subject.object), self._edit(subject, f"m{self.changes}"))

    def _edit(self, subject: AnySubject, value: str) -> dict[str, Any]:
        if isinstance(subject, CatalogueSubject):
            edit = set_at({}, Path.parse(subject.member), value)
            assert isinstance(edit, dict)
            return edit
        return self.draw.choice([{"labels": {"drifted": value}}, _website(value)])


def _is_busy(subject: AnySubject, cloud: SoakCloud) -> bool:
    """Whether an operation of the service is changing the object."""
    key = cloud.key_of(subject.object) if isinstance(subject, CatalogueSubject) else None
    return key is not None and bool(cloud.google.state.objects[key].pending)


def _website(value: str) -> dict[str, Any]:
    return {"website": {"mainPageSuffix": f"{value}.html"}}


@dataclass(slots=True)
class FaultInjector:
    """Faults that come and go."""

    cloud: SoakCloud
    draw: random.Random
    faults: int = 0

    async def inject_until_cancelled(self) -> None:
        """Another fault every now and then; sometimes none for a while."""
        while True:
            if self.draw.random() < 0.2:
                self.cloud.faults.clear()
            else:
                self.cloud.inject(self._fault())
                self.faults += 1
            await asyncio.sleep(0.2 + self.draw.random())

    def clear(self) -> None:
        """Ends all faults."""
        self.cloud.faults.clear()

    def _fault(self) -> Fault:
        times = self.draw.randint(1, 40)
        moment = self.draw.choice(list(FaultTiming))
        method = self.draw.choice([".*", "GET", "POST|PATCH|PUT", "DELETE"])
        faults: list[Fault] = [
            FailRequest(self.draw.choice([500, 502, 503]), method, times=times, moment=moment),
            FailRequest(429, method, times=times, retry_after=1),
            DropConnection(method, times=times, moment=moment),
            AddLatency(self.draw.random() / 5),
            FailOperation(times=self.draw.randint(1, 5)),
            LimitRequests(self.draw.choice([50, 200, None])),
        ]
        return self.draw.choice(faults)
