"""What is said to whoever lost a race: what is there now, and what to do."""

from setpoint.engine.resource import Resource
from setpoint.errors import WriteConflict


def changed_since(seen: Resource, now: Resource | None) -> WriteConflict:
    """What became of a resource since it was seen."""
    if now is None:
        return WriteConflict(f"{seen.ref} is gone: read again and plan again")
    if now.uid != seen.uid:
        return WriteConflict(f"{seen.ref} was deleted and made anew: read it again and plan again")
    return WriteConflict(
        f"{seen.ref} has changed since it was read (revision {seen.revision}, now {now.revision}): "
        "read it again and plan again"
    )


def already_there(there: Resource) -> WriteConflict:
    """Somebody has the name that a new resource was to have."""
    if there.is_deleting:
        return WriteConflict(f"{there.ref} is being deleted: wait until it is gone, then make it anew")
    return WriteConflict(f"{there.ref} is there already (uid {there.uid}): read it and plan again")
