"""The Secret with what a service tells once, in its answer to a creation, such as the private key of a service account.

The Secret is there before the object, so that it can certainly be written. The answer goes into it before anything else
is done. An object that is on record and is not that of the Secret cannot be used by a program: it is deleted, and
another one is created. A step that is killed between the answer and the Secret, or whose answer is lost, leaves an
object that may be another writer's as well: it is never deleted, and the step is refused until an operator decides.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.plan import Action, Plan, PlannedWrite
from setpoint.engine.capabilities import IssuedSecret, SupportsGeneratedSecret
from setpoint.engine.context import KindStepContext
from setpoint.engine.kind import Intent, LiveObservation, Location, Present
from setpoint.engine.management import Management
from setpoint.engine.owners.generated_secret import is_ours, require_ours, secret_of
from setpoint.engine.resource import SECRET, Resource, ResourceRef
from setpoint.engine.step.delete import delete_to_replace
from setpoint.engine.step.outcomes import PlannedStep
from setpoint.errors import WriteConflict

_EVENT: Final = "SecretIssued"
# How often another writer may be faster, before the answer is given up.
_ATTEMPTS: Final = 5


async def plan_reissue(context: KindStepContext, intent: Intent, observed: LiveObservation) -> PlannedStep | None:
    """The step that deletes an object whose Secret does not have what the service told of it; None for any other."""
    wanted = _issued_secret(context)
    if wanted is None or not isinstance(observed, Present) or context.management is not Management.FULL:
        return None
    ref = _ref(wanted, context.resource)
    live = await context.engine.store.get(ref)
    if live is not None and wanted.is_of(_entries(live), intent.location):
        return None
    because = f"{ref} does not have what was issued for {intent.location}, which is told once: another takes its place"
    plan = Plan(Decision.DIFFERS, (PlannedWrite(Action.REPLACE, "replace"),), because=because)
    return PlannedStep(plan, lambda: delete_to_replace(context, intent.location, observed))


async def is_issued(context: KindStepContext, location: Location) -> bool:
    """Whether the Secret of the resource has what was issued for the object: that proves it to be the resource's."""
    wanted = _issued_secret(context)
    live = None if wanted is None else await context.engine.store.get(_ref(wanted, context.resource))
    if wanted is None or live is None or not is_ours(live, context.resource):
        return False
    return wanted.is_of(_entries(live), location)


async def keep_issued(context: KindStepContext, entries: Mapping[str, bytes]) -> None:
    """Puts what the service answered into the Secret of the resource, whatever other writers do to it meanwhile."""
    wanted = _issued_secret(context)
    assert wanted is not None, "only a kind with such a Secret returns what is issued"
    ref, store = _ref(wanted, context.resource), context.engine.store
    data = {key: base64.b64encode(value).decode() for key, value in entries.items()}
    for attempt in range(1, _ATTEMPTS + 1):
        live = await store.get(ref)
        try:
            if live is None:
                await store.create(secret_of(context.resource, ref, data))
            else:
                require_ours(live, context.resource)
                await store.replace(live, {**live.document, "data": data})
            break
        except WriteConflict:
            if attempt == _ATTEMPTS:
                raise
    await store.record_event(context.event(_EVENT, f"what the service issued is kept in {ref}"))


def _issued_secret(context: KindStepContext) -> IssuedSecret | None:
    kind: object = context.kind
    found = kind.generated_secret(context.resource) if isinstance(kind, SupportsGeneratedSecret) else None
    return found if isinstance(found, IssuedSecret) else None


def _ref(wanted: IssuedSecret, resource: Resource) -> ResourceRef:
    return ResourceRef(*SECRET, resource.ref.namespace, wanted.name)


def _entries(secret: Resource) -> dict[str, bytes]:
    """The entries of a Secret; one that is not in base64 is none."""
    data, found = secret.document.get("data"), {}
    for key, text in data.items() if isinstance(data, Mapping) else ():
        try:
            found[key] = base64.b64decode(str(text), validate=True)
        except binascii.Error:
            continue
    return found
