"""A resource in another store: what the engine remembers of it, in the terms that hold there.

Digests of intents and versions of secrets speak of uids and revisions, which every store gives anew. Where they stand
for the same thing in both, the new ones take the place of the old; everything else is carried over as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from setpoint.core.cookie import Cookie
from setpoint.engine.contest import Contests
from setpoint.engine.exports import ExportedResource
from setpoint.engine.remembered import COOKIE, COOKIE_ANNOTATION, REQUESTED, Attempt, Remembered
from setpoint.engine.resource import Resource, Tree
from setpoint.engine.scene import MANAGEMENT

_OBSERVED: Final = "observedGeneration"
# What a resource said of its management before an export paused it; empty when it said nothing.
MANAGEMENT_BEFORE: Final = "setpoint.dev/management-before-export"
# Written by the engine, or on its behalf: no author's.
ENGINE_ANNOTATIONS: Final = (COOKIE_ANNOTATION, REQUESTED, MANAGEMENT_BEFORE)


@dataclass(frozen=True, slots=True)
class Passage:
    """What stands in the new store for what stood in the old one: intents by their digest, secrets by their version."""

    intents: Mapping[str, str] = field(default_factory=dict)
    # By the field that the secret is for, and its old version.
    versions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    # Live objects by their digest, and by that of their bytes, where they read differently.
    lives: Mapping[str, str] = field(default_factory=dict)

    def intent(self, digest: str) -> str:
        """The digest in the new store; the old one where nothing there is known to be the same."""
        return self.intents.get(digest, digest)

    def cookie(self, cookie: Cookie) -> Cookie:
        """The cookie in the new store: the live object is the same, however it reads there."""
        return Cookie(self.intent(cookie.intent), self.live(cookie.live))

    def live(self, digest: str) -> str:
        """The digest of the same live object, however it reads there."""
        return self.lives.get(digest, digest)

    def secrets(self, versions: Mapping[str, str]) -> Mapping[str, str]:
        """The versions in the new store."""
        return {name: self.versions.get((name, version), version) for name, version in versions.items()}


def arriving(item: ExportedResource, generation: int) -> Tree:
    """The status as it can be written before anything is known of what is around: it speaks of `generation`, or not."""
    status = item.resource.status
    if _OBSERVED not in status:
        return status
    return {**status, _OBSERVED: generation if item.facts.observed else generation - 1}


def settled_in(item: ExportedResource, generation: int, passage: Passage) -> Tree:
    """The status in the terms of the new store; the cookie stays where it was kept."""
    status = arriving(item, generation)
    if not status:
        return status
    return in_new_terms(Remembered.of(item.resource), passage).into(status, with_cookie=COOKIE in status)


def own_annotations(item: ExportedResource, passage: Passage) -> Mapping[str, str | None]:
    """The annotations that are not left to an apply, as they are to be; None for those that are to go."""
    said = item.resource.annotations
    found: dict[str, str | None] = {name: said.get(name) for name in (*ENGINE_ANNOTATIONS, MANAGEMENT)}
    cookie = Cookie.parse(said.get(COOKIE_ANNOTATION))
    return found if cookie is None else {**found, COOKIE_ANNOTATION: str(passage.cookie(cookie))}


def manifest_of(resource: Resource) -> Tree:
    """The author's part of an exported resource, or Secret."""
    annotations = {name: text for name, text in resource.annotations.items() if name not in ENGINE_ANNOTATIONS}
    metadata = {"name": resource.ref.name, "namespace": resource.ref.namespace}
    author = {name: value for name, value in resource.document.items() if name not in ("metadata", "status")}
    return {**author, "metadata": {**metadata, "labels": dict(resource.labels), "annotations": annotations}}


def in_new_terms(memory: Remembered, passage: Passage) -> Remembered:
    """The memory in the terms that hold elsewhere."""
    return replace(
        memory,
        cookie=None if memory.cookie is None else passage.cookie(memory.cookie),
        attempt=None if memory.attempt is None else _attempt(memory.attempt, passage),
        secrets=passage.secrets(memory.secrets),
        contests=_contests(memory.contests, passage),
        body=None if memory.body is None else passage.live(memory.body),
        creating=None if memory.creating is None else passage.secrets(memory.creating),
        wait=None if memory.wait is None else replace(memory.wait, intent=passage.intent(memory.wait.intent)),
    )


def _contests(contests: Contests, passage: Passage) -> Contests:
    fields = (one if one.begun is None else replace(one, begun=passage.live(one.begun)) for one in contests.fields)
    return Contests(passage.intent(contests.intent), tuple(fields))


def _attempt(attempt: Attempt, passage: Passage) -> Attempt:
    stuck_at = None if attempt.stuck_at is None else passage.cookie(attempt.stuck_at)
    return replace(attempt, intent=passage.intent(attempt.intent), stuck_at=stuck_at)
