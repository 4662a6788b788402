"""What a resource names outside itself: other resources, and keys of Secrets."""

import base64
import binascii
from collections.abc import Sequence

from setpoint.core.conditions import find_condition, from_data
from setpoint.engine.kind import Need, Reference, Resolved, SecretKey
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import DependencyInvalid, DependencyNotFound, DependencyNotReady


async def resolve_needs(needs: Sequence[Need], store: Store) -> Resolved:
    """What the needs come to; a DependencyNotReady names the first that is missing, unready or unfit."""
    resources: dict[str, Resource] = {}
    secrets: dict[str, str] = {}
    versions: dict[str, str] = {}
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
    return Resolved(resources, secrets, versions, seen)


async def resolve_what_is_there(needs: Sequence[Need], store: Store) -> Resolved:
    """What those of the needs come to that are there, ready and fit; the others are left out."""
    found = Resolved()
    for need in needs:
        try:
            one = await resolve_needs([need], store)
        except DependencyNotReady:
            continue
        found = Resolved(
            {**found.resources, **one.resources},
            {**found.secrets, **one.secrets},
            {**found.versions, **one.versions},
            {**found.seen, **one.seen},
        )
    return found


def is_ready(resource: Resource) -> bool:
    """Whether the resource says that it is as declared, for the spec that it has now."""
    ready = find_condition(from_data(resource.status.get("conditions")), "Ready")
    current = resource.status.get("observedGeneration") == resource.generation
    return ready is not None and ready.status == "True" and current and not resource.is_deleting


async def _referenced(reference: Reference, store: Store) -> Resource:
    found = await store.get(reference.target)
    if found is None:
        raise DependencyNotFound(f"reference {reference.target} is not found")
    if reference.must_be_ready and not is_ready(found):
        raise DependencyNotReady(f"reference {reference.target} is not ready")
    return found


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
