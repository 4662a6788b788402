"""What a resource names outside itself: other resources, and keys of Secrets."""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from setpoint.core import outputs
from setpoint.core.conditions import find_condition, from_data
from setpoint.core.paths import get_at
from setpoint.core.values import Json, Missing
from setpoint.engine.kind import Need, Reference, Resolved, SecretKey, Value
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import Blocked, DependencyInvalid, DependencyNotFound, DependencyNotReady

# Where a status says what the resource offers to others, if its kind waits for anything.
OUTPUT: Final = "output"


async def resolve_needs(needs: Sequence[Need], store: Store) -> Resolved:
    """What the needs come to; a DependencyNotReady names the first that is missing, unready or unfit."""
    resources: dict[str, Resource] = {}
    secrets: dict[str, str] = {}
    versions: dict[str, str] = {}
    values: dict[str, Json] = {}
    seen: dict[ResourceRef, Revision] = {}
    for need in needs:
        match need:
            case Reference():
                found = resources[need.field] = await _referenced(need, store)
                seen[found.ref] = found.revision
            case SecretKey():
                secret = await _secret(need.secret, store)
                secrets[need.field] = secret_value(need, secret)
                versions[need.field] = f"{secret.uid}/{secret.revision}/{need.key}"
                seen[secret.ref] = secret.revision
            case Value():
                source = await _there(need.target, store)
                values[need.field] = offered(need, source)
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
    ready = find_condition(from_data(resource.status.get("conditions")), "Ready")
    current = resource.status.get("observedGeneration") == resource.generation
    return ready is not None and ready.status == "True" and current and not resource.is_deleting


async def _referenced(reference: Reference, store: Store) -> Resource:
    found = await _there(reference.target, store)
    if reference.must_be_ready and not is_ready(found):
        raise DependencyNotReady(f"reference {reference.target} is not ready{_why(found)}")
    return found


async def _there(target: ResourceRef, store: Store) -> Resource:
    found = await store.get(target)
    if found is None:
        raise DependencyNotFound(f"reference {target} is not found")
    return found


def offered(need: Value, source: Resource) -> Json:
    """The value that `need` names in `source`.

    Blocked while there is none, with the reason and what that waits for in turn; ManifestInvalid when there never will
    be.
    """
    told = f"waiting for {need.path} of {source.ref}"
    if source.is_deleting:
        raise Blocked(f"{told}: it is being deleted")
    if source.status.get("observedGeneration") != source.generation:
        raise Blocked(f"{told}: it has not been looked at since its spec changed{_why(source)}")
    if need.is_awaited:
        try:
            return outputs.value_at(outputs.from_data(source.status.get(OUTPUT)), need.path, str(source.ref))
        except Blocked as error:
            raise Blocked(f"{error}{_why(source)}") from error
    if not is_ready(source):
        raise Blocked(f"{told}: it is not ready{_why(source)}")
    found = get_at(source.document, need.path)
    if found is None or isinstance(found, Missing):
        raise Blocked(f"{told}: it is ready, and there is no such value; check the path")
    return found


def _why(source: Resource) -> str:
    """What a resource that is blocked waits for itself."""
    ready = find_condition(from_data(source.status.get("conditions")), "Ready")
    is_blocked = ready is not None and ready.reason in ("Blocked", "DependencyNotReady", "DependencyNotFound")
    return f"; it is blocked itself: {ready.message}" if ready is not None and is_blocked else ""


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
