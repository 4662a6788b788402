"""The commit of a step: what it has sent comes on record, even if another write to the resource came first."""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from setpoint.core.values.canonical import same
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.resource import Resource
from setpoint.errors import WriteConflict

if TYPE_CHECKING:
    from setpoint.engine.context import EngineContext

# Another write may come first each time.
_MOST_TRIES: Final = 5


async def commit_update(
    resource: Resource, update: ResourceUpdate, engine: "EngineContext", sent: str = ""
) -> Resource:
    """The resource once it is updated. WriteConflict when another write came first: the step has to be taken again.

    Of a step that has `sent` something, the update is then made over that write, unless it was to the status as well.
    """
    try:
        return await _updated(resource, update, engine)
    except WriteConflict as error:
        if not sent or update.finalizers is not None:
            raise
        await _make_over(resource, update, engine)
        raise WriteConflict(str(error), begun=sent) from error


async def _make_over(seen: Resource, update: ResourceUpdate, engine: "EngineContext") -> None:
    for _ in range(_MOST_TRIES):
        await engine.store.refresh([seen.ref])
        now = await engine.store.get(seen.ref)
        if now is None or now.uid != seen.uid or not same(now.status, seen.status):
            return
        with suppress(WriteConflict):
            await _updated(now, update, engine)
            return


async def _updated(resource: Resource, update: ResourceUpdate, engine: "EngineContext") -> Resource:
    after = await engine.store.update(resource, update)
    assert after is not None, "a finalizer is only added here"
    engine.leave_status(after)
    return after
