"""The author: edits without a pause, and records when each edit was executed."""

import asyncio
import random
import time
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field

from soak.fleet.api import Api
from soak.fleet.cloud import MultiEndpointCloud
from soak.fleet.cluster_objects import ObjectWatch
from soak.fleet.subjects import Subject

_POLL_SECONDS = 0.02
_TIMEOUT_SECONDS = 180.0


@dataclass(slots=True)
class Edit:
    """One edit: when the cluster had it, and when the object did; 0 until then."""

    subject: Subject
    edition: int
    at: float
    done_at: float = 0.0
    # By the clock on the wall, for readers of the logs.
    time: str = field(default_factory=lambda: time.strftime("%H:%M:%S", time.gmtime()))

    @property
    def text(self) -> str:
        """As a text."""
        seconds = self.done_at - self.at
        return f"{self.subject.kind} {self.subject.name} edition {self.edition}, at {self.time} for {seconds:.1f} s"


@dataclass(slots=True)
class Author:
    """Edits a resource again only when its object has the edit before: none may be lost, and none is made needless."""

    api: Api
    cloud: MultiEndpointCloud
    objects: ObjectWatch
    draw: random.Random
    edits: list[Edit] = field(default_factory=list)
    is_stopping: bool = False
    _busy: set[Subject] = field(default_factory=set)
    _editions: dict[Subject, int] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """Where the resources are."""
        return self.objects.namespace

    async def declare(self, subjects: tuple[Subject, ...]) -> None:
        """All of them, until the object of each is there."""
        for subject in subjects:
            await self.api.create(subject.resources(self.namespace), subject.manifest(0))
            self._editions[subject] = 0
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while not all(self._is_executed(subject) for subject in subjects):
                await asyncio.sleep(_POLL_SECONDS)

    def edit(self, subject: Subject) -> Awaitable[Edit]:
        """One edit, once it was executed; AssertionError when it is not in time."""
        # Before anything is awaited: no other actor edits it from here on.
        self._busy.add(subject)
        self._editions[subject] += 1
        return self._edit(subject, self._editions[subject])

    async def edit_until_stopped(self, subjects: tuple[Subject, ...], pause: float) -> None:
        """One edit after the other, without waiting for any to be executed; at the end for all of them."""
        editing: list[asyncio.Future[Edit]] = []
        while not self.is_stopping:
            idle = self._idle(subjects)
            if idle:
                editing.append(asyncio.ensure_future(self.edit(self.draw.choice(idle))))
            await asyncio.sleep(pause)
        await asyncio.gather(*editing)

    async def edit_idle(self, subjects: Iterable[Subject]) -> list[Edit]:
        """One edit of each subject without an edit under way."""
        return list(await asyncio.gather(*map(self.edit, self._idle(subjects))))

    async def _edit(self, subject: Subject, edition: int) -> Edit:
        change = {"spec": subject.spec(edition)}
        await self.api.change(f"{subject.resources(self.namespace)}/{subject.name}", change)
        edit = Edit(subject, edition, time.monotonic())
        self.edits.append(edit)
        while not self._is_executed(subject):
            assert time.monotonic() < edit.at + _TIMEOUT_SECONDS, f"{edit} was not executed in {_TIMEOUT_SECONDS:.0f} s"
            await asyncio.sleep(_POLL_SECONDS)
        edit.done_at = time.monotonic()
        self._busy.discard(subject)
        return edit

    def _idle(self, subjects: Iterable[Subject]) -> list[Subject]:
        return [subject for subject in subjects if subject not in self._busy]

    def last_edition(self, subject: Subject) -> int:
        """The newest that it was given."""
        return self._editions[subject]

    def _is_executed(self, subject: Subject) -> bool:
        """Whether the object has the last edition. Reads past the journal of the cloud, which counts requests."""
        live = self.objects.live(subject.name) if subject.is_in_cluster else self.cloud.stored(subject.path)
        return live is not None and subject.mark_in(live) == subject.mark(self._editions[subject])
