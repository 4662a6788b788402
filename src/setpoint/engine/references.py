"""What a resource names outside itself: other resources, and keys of Secrets."""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from setpoint.core import outputs
from setpoint.core.paths import get_at
from setpoint.core.values import Json, Missing
from setpoint.engine.kind import Need, Reference, Resolved, SecretKey, Value
from setpoint.engine.ports import Store
from setpoint.engine.report import condition_of
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import Blocked, DependencyInvalid, DependencyNotFound, DependencyNotReady

# Where a status says what the resource offers to others, if its kind waits for anything.
OUTPUT: Final = "output"
# Between what a resource waits for and what that waits for itself.
_LINK: Final = "; it is blocked itself: "
_MOST_LINKS: Final = 7


async def resolve_needs(needs: Sequence[Need], store: Store, needing: ResourceRef | None = None) -> Resolved:
    """What the needs of `needing` come to; a NotReady names the first that is missing, unready or unfit, and why."""
    resources: dict[str, Resource] = {}
    secrets: dict[str, str] = {}
    versions: dict[str, str] = {}
    values: dict[str, Json] = {}
    seen: dict[ResourceRef, Revision] = {}
    for need in needs:
        match need:
            case Reference():
                found = await _referenced(need, store, needing)
                seen[found.ref] = found.revision
                if need.is_used:
                    resources[need.field] = found
            case SecretKey():
                secret = await _secret(need.secret, store)
                secrets[need.field] = secret_value(need, secret)
                versions[need.field] = f"{secret.uid}/{secret.revision}/{need.key}"
                seen[secret.ref] = secret.revision
            case Value():
                source = await _there(need.target, store)
                values[need.field] = offered(need, source, needing)
                seen[source.ref] = source.revision
    return Resolved(resources, secrets, versions, values, seen)


async def resolve_what_is_there(needs: Sequence[Need], store: Store) -> Resolved:
    """What those of the needs come to that are there, ready and fit; the others are left out."""
    found = Resolved()
    for need in needs:
        try:
            one = await resolve_needs([need], store)
        except (DependencyNotReady, Blocked):
            continue
        found = Resolved(
            {**found.resources, **one.resources},
            {**found.secrets, **one.secrets},
            {**found.versions, **one.versions},
            {**found.values, **one.values},
            {**found.seen, **one.seen},
        )
    return found


def is_ready(resource: Resource) -> bool:
    """Whether the resource says that it is as declared, for the spec that it has now."""
    ready = condition_of(resource, "Ready")
    current = resource.status.get("observedGeneration") == resource.generation
    return ready is not None and ready.status == "True" and current and not resource.is_deleting


async def _referenced(reference: Reference, store: Store, needing: ResourceRef | None) -> Resource:
    found = await _there(reference.target, store)
    if reference.must_be_ready and not is_ready(found):
        raise DependencyNotReady(f"reference {reference.target} is not ready{_chain(found, needing)}")
    return found


async def _there(target: ResourceRef, store: Store) -> Resource:
    found = await store.get(target)
    if found is None:
        raise DependencyNotFound(f"reference {target} is not found")
    return found


def offered(need: Value, source: Resource, needing: ResourceRef | None = None) -> Json:
    """The value that `need` names in `source`.

    Blocked while there is none, with the reason and what that waits for in turn; ManifestInvalid when there never will
    be. Whatever is not ready is about to change, or may be: nothing is taken from it.
    """
    told = f"waiting for {need.path} of {source.ref}"
    if source.is_deleting:
        raise Blocked(f"{told}: it is being deleted")
    if source.status.get("observedGeneration") != source.generation:
        raise Blocked(f"{told}: it has not been looked at since its spec changed")
    output = outputs.from_data(source.status.get(OUTPUT)) if need.is_awaited else None
    # What a resource said of its value before it was blocked is not why it has none now.
    says_why = isinstance(output, outputs.Unknown) and not _is_blocked(source)
    if need.must_be_ready and not is_ready(source) and not says_why:
        raise Blocked(f"{told}: it is not ready{_chain(source, needing) or _reason(source)}")
    if output is not None:
        return outputs.value_at(output, need.path, str(source.ref))
    found = get_at(source.document, need.path)
    if found is None or isinstance(found, Missing):
        raise Blocked(f"{told}: it is ready, and there is no such value; check the path")
    return found


def _reason(source: Resource) -> str:
    ready = condition_of(source, "Ready")
    return f" ({ready.reason})" if ready is not None and ready.reason else ""


def _is_blocked(source: Resource) -> bool:
    ready = condition_of(source, "Ready")
    is_current = source.status.get("observedGeneration") == source.generation
    return is_current and ready is not None and ready.reason in ("Blocked", "DependencyNotReady", "DependencyNotFound")


def _chain(source: Resource, needing: ResourceRef | None) -> str:
    """What a resource that is blocked waits for itself, and so on: as far as `needing`, where it leads back there."""
    ready = condition_of(source, "Ready")
    if ready is None or not _is_blocked(source):
        return ""
    links = ready.message.split(_LINK)
    back = next((at for at, link in enumerate(links) if needing is not None and _names(link, needing)), len(links))
    links = links[: back + 1]
    if len(links) > _MOST_LINKS:
        # Only the first: what stands at the end of a ring is something else each time that it is asked for.
        links = [*links[:_MOST_LINKS], "…"]
    return "".join(f"{_LINK}{link}" for link in links)


def _names(link: str, ref: ResourceRef) -> bool:
    return any(f" {ref}{end}" in link for end in (" ", ":", ","))


async def _secret(ref: ResourceRef, store: Store) -> Resource:
    found = await store.get(ref)
    if found is None:
        raise DependencyNotFound(f"Secret {ref.namespace}/{ref.name} was not found")
    return found


def secret_value(need: SecretKey, secret: Resource) -> str:
    """The value that `need` names in `secret`; DependencyInvalid when there is none, or none that is text."""
    data = secret.document.get("data")
    encoded = data.get(need.key) if isinstance(data, dict) else None
    where = f"Secret {need.secret.namespace}/{need.secret.name}"
    if not isinstance(encoded, str):
        raise DependencyInvalid(f"key '{need.key}' was not found in {where}")
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        # Without its cause: that would show the value.
        raise DependencyInvalid(f"key '{need.key}' in {where} is not text in base64") from None
