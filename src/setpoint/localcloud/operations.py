"""Long-running operations: pending, running, done; the change takes effect at the end."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, assert_never

from msgspec.structs import replace

from setpoint.core.canonical import same
from setpoint.localcloud import refusals
from setpoint.localcloud.clock import stamp
from setpoint.localcloud.faults import Faults
from setpoint.localcloud.sql_outputs import API
from setpoint.localcloud.sql_state import (
    Effect,
    Instance,
    Operation,
    PutDatabase,
    PutInstance,
    PutUser,
    RemoveDatabase,
    RemoveInstance,
    RemoveUser,
    SqlState,
    User,
)
from setpoint.localcloud.trees import Tree, with_member, without_member

# Recorded as done in the very answer to the request.
_AT_ONCE: Final = frozenset({"CREATE_USER", "UPDATE_USER", "DELETE_USER", "CREATE_DATABASE"})
_CREATING: Final = frozenset({"CREATE", "CREATE_REPLICA", "CLONE"})
# The first part of the time an operation is only waiting.
_PENDING_SHARE: Final = 0.25
_KEPT: Final = 1000
_VOLATILE: Final = ("settings.settingsVersion", "state")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long operations take, and how long the name of a deleted instance cannot be used again."""

    operation_seconds: float = 0.5
    name_reserved_seconds: float = 0.0


@dataclass(slots=True)
class CloudSql:
    """The service: what it remembers, how fast it is, and what it was told to do wrong."""

    state: SqlState
    faults: Faults
    pace: Pace


@dataclass(frozen=True, slots=True)
class Wanted:
    """An operation that is to be started."""

    type: str
    project: str
    instance: str
    effect: Effect
    # Where it differs from the instance itself.
    target_id: str | None = None
    target_link: str | None = None
    also_locks: tuple[str, ...] = ()


def start(sql: CloudSql, wanted: Wanted, now: datetime) -> Tree:
    """The operation as the request is answered with it; a short one is done already."""
    sql.state.count += 1
    name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{wanted.project}/operations/{sql.state.count}"))
    key = f"{wanted.project}/{wanted.instance}"
    seconds = 0.0 if wanted.type in _AT_ONCE else sql.pace.operation_seconds
    target_id = wanted.target_id or wanted.instance
    begin = now.timestamp()
    operation = Operation(
        name=name,
        project=wanted.project,
        type=wanted.type,
        target_id=target_id,
        target_link=wanted.target_link or f"{API}/projects/{wanted.project}/instances/{target_id}",
        key=key,
        locks=[key, *wanted.also_locks],
        inserted=begin,
        starts=begin + seconds * _PENDING_SHARE,
        ends=begin + seconds,
        effect=wanted.effect,
        error=sql.faults.operation_error(wanted.type, target_id),
    )
    sql.state.operations[name] = operation
    settle(sql, now)
    forget_oldest(sql.state)
    return view(operation, now)


def view(operation: Operation, now: datetime) -> Tree:
    """The operation as GET answers."""
    result: Tree = {
        "insertTime": _time(operation.inserted),
        "kind": "sql#operation",
        "name": operation.name,
        "operationType": operation.type,
        "selfLink": f"{API}/projects/{operation.project}/operations/{operation.name}",
        "status": "PENDING",
        "targetId": operation.target_id,
        "targetLink": operation.target_link,
        "targetProject": operation.project,
        "user": "user@example.com",
    }
    if now.timestamp() >= operation.starts:
        result |= {"startTime": _time(operation.starts), "status": "RUNNING"}
    if operation.is_finished:
        result |= {"endTime": _time(operation.ends), "status": "DONE"}
        if operation.error is not None:
            result["error"] = operation.error
    return result


def running(state: SqlState, key: str) -> Iterator[Operation]:
    """The operations that keep the instance busy."""
    return (one for one in state.operations.values() if not one.is_finished and key in one.locks)


def refuse_while_busy(state: SqlState, key: str) -> None:
    """Refuses when an operation on the instance is not done yet."""
    if any(running(state, key)):
        raise refusals.operation_in_progress()


def settle(sql: CloudSql, now: datetime) -> None:
    """Carries out every operation whose time has come, in the order of their ends."""
    due = [one for one in sql.state.operations.values() if not one.is_finished and one.ends <= now.timestamp()]
    for operation in sorted(due, key=lambda one: one.ends):
        operation.is_finished = True
        instance = sql.state.instances.get(operation.key)
        if instance is None:
            continue
        if operation.error is None:
            take_effect(sql, operation, instance)
        elif operation.type in _CREATING:
            instance.resource = {**instance.resource, "state": "FAILED"}


def take_effect(sql: CloudSql, operation: Operation, instance: Instance) -> None:
    """Does what the operation was for."""
    match operation.effect:
        case PutInstance(resource):
            commit(sql, instance, resource)
            touch_primary(sql, operation, instance)
        case RemoveInstance():
            del sql.state.instances[operation.key]
            sql.state.deleted[operation.key] = operation.ends
            touch_primary(sql, operation, instance)
        case PutUser(user):
            put_user(instance, replace(user, resource=sql.faults.rewritten(user.resource)))
        case RemoveUser(name, host):
            remove_user(instance, name, host)
        case PutDatabase(name, resource):
            instance.databases[name] = sql.faults.rewritten(resource)
        case RemoveDatabase(name):
            instance.databases.pop(name, None)
        case _:
            assert_never(operation.effect)


def put_user(instance: Instance, user: User) -> None:
    """The user of that name and host becomes this one."""
    remove_user(instance, user.name, user.host)
    instance.users = [*instance.users, user]


def remove_user(instance: Instance, name: str, host: str) -> None:
    """The user of that name and host is gone."""
    instance.users = [one for one in instance.users if (one.name, one.host) != (name, host)]


def commit(sql: CloudSql, instance: Instance, resource: Tree) -> None:
    """The instance becomes `resource`; the version of its settings moves if anything but the state does."""
    before, after = instance.resource, sql.faults.rewritten(resource)
    is_change = not same(_lasting(before), _lasting(after))
    instance.resource = with_member(after, "settings.settingsVersion", _version_after(before, moves=is_change))


def touch_primary(sql: CloudSql, operation: Operation, instance: Instance) -> None:
    """A replica that comes or goes moves the version of its primary's settings."""
    primary = sql.state.instances.get(primary_key(operation.project, instance.resource))
    if primary is not None and operation.type in ("CREATE_REPLICA", "DELETE"):
        version = _version_after(primary.resource, moves=True)
        primary.resource = with_member(primary.resource, "settings.settingsVersion", version)


def primary_key(project: str, resource: Tree) -> str:
    """The key of an instance's primary; of no instance when it has none."""
    name = str(resource.get("masterInstanceName", ""))
    return f"{project}/{name.rpartition(':')[2]}"


def forget_oldest(state: SqlState) -> None:
    """Keeps the list of finished operations from growing for ever."""
    for name in [one.name for one in state.operations.values() if one.is_finished][:-_KEPT]:
        del state.operations[name]


def _lasting(resource: Tree) -> Tree:
    for path in _VOLATILE:
        resource = without_member(resource, path)
    return resource


def _version_after(resource: Tree, *, moves: bool) -> str:
    version = int(resource["settings"].get("settingsVersion", "0"))
    return str(version + 1 if moves else version)


def _time(seconds: float) -> str:
    return stamp(datetime.fromtimestamp(seconds, UTC))
