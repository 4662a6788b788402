"""The checks of a soak: everything settled, manifests and objects equal, nothing lost, nothing done twice."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.core.values.canonical import same
from setpoint.engine.references import is_ready
from setpoint.engine.resource import Resource
from setpoint.engine.state import RECONCILE_HANDLED, RECONCILE_REQUESTED
from soak.actors import AnySubject, Author
from soak.catalogue_subjects import CatalogueSubject
from soak.cloud import SoakCloud
from soak.process import Process
from soak.subjects import differences

_TIMEOUT_SECONDS: Final = 600.0


async def until_settled(process: Process, author: Author) -> int:
    """Waits until everything is ready and every deleted resource is gone; how many are not after the timeout."""
    unsettled = len(author.declared)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while unsettled:
                resources = await stored(process)
                unsettled = sum(not _is_settled(one) for one in resources) + abs(len(resources) - len(author.declared))
                await asyncio.sleep(0.5)
    except TimeoutError:
        pass
    return unsettled


def _is_settled(resource: Resource) -> bool:
    """Whether it is ready, and the requested reconcile was handled."""
    return is_ready(resource) and resource.annotations.get(RECONCILE_REQUESTED) == resource.status.get(
        RECONCILE_HANDLED
    )


async def stored(process: Process) -> tuple[Resource, ...]:
    """All resources on record."""
    async with open_engine(AppSettings(store=process.url), StoreAccess.READ) as engine:
        return (await engine.store.list()).resources


async def problems(process: Process, author: Author, cloud: SoakCloud) -> list[str]:
    """Every failed check, as a text."""
    resources = {one.ref.name: one for one in await stored(process)}
    cloud.count()
    found = [*_unsettled(resources), *_lost(resources, author), *_different(author, cloud), *cloud.effects.wrong]
    return [*found, *_counts(author, cloud)]


def _unsettled(resources: dict[str, Resource]) -> Iterator[str]:
    for name, resource in resources.items():
        if not is_ready(resource):
            yield f"{name} is not settled: {resource.status.get('conditions')}"


def _lost(resources: dict[str, Resource], author: Author) -> Iterator[str]:
    names = {subject.name for subject in author.declared}
    yield from (f"{name} is on record, and was deleted" for name in resources.keys() - names)
    for subject, manifest in author.declared.items():
        resource = resources.get(subject.name)
        if resource is None:
            yield f"{subject.name} was acknowledged and is lost"
        elif not same(resource.spec, manifest["spec"]):
            yield f"{subject.name} has a spec that is not the last one acknowledged"


def _different(author: Author, cloud: SoakCloud) -> Iterator[str]:
    for subject, manifest in author.declared.items():
        if isinstance(subject, CatalogueSubject):
            yield from subject.differences(manifest, cloud)
        else:
            yield from differences(subject, manifest, cloud)
    extra = cloud.objects() - {subject.object for subject in author.declared}
    yield from (f"{name} exists, and is not declared" for name in sorted(extra))


def _counts(author: Author, cloud: SoakCloud) -> Iterator[str]:
    """Each object was created once more than it was deleted, or as often: nothing was created twice."""
    there = {subject.object for subject in author.declared}
    effects = cloud.effects
    for name, created in effects.created.items():
        went = effects.deleted.get(name, 0) + effects.deleted_by_other_writer.get(name, 0)
        if created != went + (name in there):
            yield f"{name} was made {created} times and went {went} times"


def summary(author: Author, cloud: SoakCloud, subjects: tuple[AnySubject, ...]) -> dict[str, Any]:
    """What happened, in figures."""
    counts = cloud.journal.counts()
    return {
        "resources": len(subjects),
        "kinds": len({one.kind for one in subjects}),
        "declared at the end": len(author.declared),
        "author's edits": author.edits,
        "objects made": sum(cloud.effects.created.values()),
        "objects deleted": sum(cloud.effects.deleted.values()),
        "objects deleted by the other writer": sum(cloud.effects.deleted_by_other_writer.values()),
        "calls": counts["total"],
        "writes": counts["writes"],
        "answers": counts["byStatus"],
    }
