"""What it means that a name is taken when a new object was to have it."""

from collections.abc import Awaitable

from setpoint.engine.kind import Absent, Look
from setpoint.errors import RemoteConflict, RemoteRefused


async def conflict_or_refusal(conflict: RemoteConflict, look: Awaitable[Look]) -> RemoteConflict | RemoteRefused:
    """The conflict itself when the object can be seen by now; a refusal when there is nothing that could be adopted."""
    if isinstance(await look, Absent):
        return RemoteRefused(
            f"{conflict}. Nothing can be seen under that name: it was deleted a short time ago, or belongs to somebody "
            "else. Wait, or choose another spec.resourceID"
        )
    return conflict
