"""The state of Cloud SQL, and its long-running operations: pending, running, done. A change takes effect at the end."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, TypeAlias, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud import api_errors
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.faults import Faults
from setpoint.localcloud.routing import ServiceCall
from setpoint.localcloud.schema import JsonBody, member, with_member, without_member
from setpoint.localcloud.sql.defaults import API


class DatabaseUser(Struct, frozen=True):
    """A database user. Only a salted hash of the password is kept; without a hash no login succeeds."""

    name: str
    host: str
    resource: JsonBody
    salt: str = ""
    password_hash: str = ""


class StoredInstance(Struct):
    """An instance with its users and databases. `resource` is the body of a GET while no operation runs."""

    resource: JsonBody
    users: list[DatabaseUser]
    databases: dict[str, JsonBody]
    # Outputs that were edited through the control API; they outlive the next write.
    overrides: JsonBody = field(default_factory=dict)


class PutInstance(Struct, frozen=True, tag="put-instance"):
    """Replaces the instance."""

    resource: JsonBody


class RemoveInstance(Struct, frozen=True, tag="remove-instance"):
    """Removes the instance, with its users and databases."""


class PutUser(Struct, frozen=True, tag="put-user"):
    """Creates or replaces the user with this name and host."""

    user: DatabaseUser


class RemoveUser(Struct, frozen=True, tag="remove-user"):
    """Removes the user."""

    name: str
    host: str


class PutDatabase(Struct, frozen=True, tag="put-database"):
    """Creates or replaces the database with this name."""

    name: str
    resource: JsonBody


class RemoveDatabase(Struct, frozen=True, tag="remove-database"):
    """Removes the database."""

    name: str


OperationEffect: TypeAlias = PutInstance | RemoveInstance | PutUser | RemoveUser | PutDatabase | RemoveDatabase


class LongRunningOperation(Struct):
    """A long-running operation. It takes effect at `ends`, or never when there is an `error`."""

    name: str
    project: str
    type: str
    target_id: str
    target_link: str
    # The instance that it changes, and all instances that are locked meanwhile.
    key: str
    locks: list[str]
    inserted: float
    starts: float
    ends: float
    effect: OperationEffect
    error: JsonBody | None = None
    is_finished: bool = False


class SqlState(Struct):
    """All instances and operations of all projects. An instance's key is `<project>/<name>`."""

    instances: dict[str, StoredInstance] = field(default_factory=dict)
    operations: dict[str, LongRunningOperation] = field(default_factory=dict)
    # When each name was set free, in seconds since the epoch.
    deleted: dict[str, float] = field(default_factory=dict)
    # The number of all operations so far.
    count: int = 0


# Done in the response to the request.
_IMMEDIATE: Final = frozenset({"CREATE_USER", "UPDATE_USER", "DELETE_USER", "CREATE_DATABASE"})
_CREATING: Final = frozenset({"CREATE", "CREATE_REPLICA", "CLONE"})
# The share of its time in which an operation is pending.
_PENDING_SHARE: Final = 0.25
_MAX_FINISHED: Final = 1000
_VOLATILE: Final = ("settings.settingsVersion", "state")


@dataclass(frozen=True, slots=True)
class OperationTiming:
    """How long operations take, and how long the name of a deleted instance stays reserved."""

    operation_seconds: float = 0.5
    name_reserved_seconds: float = 0.0


@dataclass(slots=True)
class CloudSql:
    """The service: its state, its active faults, and how long operations take."""

    state: SqlState
    faults: Faults
    timing: OperationTiming


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """An operation to start."""

    type: str
    project: str
    instance: str
    effect: OperationEffect
    # Where it differs from the instance itself.
    target_id: str | None = None
    target_link: str | None = None
    also_locks: tuple[str, ...] = ()


def start_operation(sql: CloudSql, wanted: OperationRequest, now: datetime) -> JsonBody:
    """Starts an operation, and returns it as the body of the response; an immediate one is done already."""
    sql.state.count += 1
    name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{wanted.project}/operations/{sql.state.count}"))
    key = f"{wanted.project}/{wanted.instance}"
    seconds = 0.0 if wanted.type in _IMMEDIATE else sql.timing.operation_seconds
    target_id = wanted.target_id or wanted.instance
    begin = now.timestamp()
    operation = LongRunningOperation(
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
    finish_due_operations(sql, now)
    drop_oldest_operations(sql.state)
    return operation_view(operation, now)


def operation_view(operation: LongRunningOperation, now: datetime) -> JsonBody:
    """The operation as the body of a GET."""
    result: JsonBody = {
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


def running_operations(state: SqlState, key: str) -> Iterator[LongRunningOperation]:
    """The unfinished operations that lock an instance."""
    return (one for one in state.operations.values() if not one.is_finished and key in one.locks)


def refuse_while_busy(state: SqlState, key: str) -> None:
    """Refuses while an operation locks the instance."""
    if any(running_operations(state, key)):
        raise api_errors.operation_in_progress()


def finish_due_operations(sql: CloudSql, now: datetime) -> None:
    """Finishes every operation that is due, in the order of their ends."""
    due = [one for one in sql.state.operations.values() if not one.is_finished and one.ends <= now.timestamp()]
    for operation in sorted(due, key=lambda one: one.ends):
        operation.is_finished = True
        instance = sql.state.instances.get(operation.key)
        if instance is None:
            continue
        if operation.error is None:
            apply_effect(sql, operation, instance)
        elif operation.type in _CREATING:
            instance.resource = {**instance.resource, "state": "FAILED"}


def apply_effect(sql: CloudSql, operation: LongRunningOperation, instance: StoredInstance) -> None:
    """Applies the effect of an operation."""
    match operation.effect:
        case PutInstance(resource):
            commit_instance(sql, instance, resource)
            bump_primary_version(sql, operation, instance)
        case RemoveInstance():
            del sql.state.instances[operation.key]
            sql.state.deleted[operation.key] = operation.ends
            bump_primary_version(sql, operation, instance)
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


def put_user(instance: StoredInstance, user: DatabaseUser) -> None:
    """Creates or replaces a user."""
    remove_user(instance, user.name, user.host)
    instance.users = [*instance.users, user]


def remove_user(instance: StoredInstance, name: str, host: str) -> None:
    """Removes the user with this name and host."""
    instance.users = [one for one in instance.users if (one.name, one.host) != (name, host)]


def commit_instance(sql: CloudSql, instance: StoredInstance, resource: JsonBody) -> None:
    """Replaces the instance; the settings version moves if anything but the state changes."""
    before, after = instance.resource, sql.faults.rewritten(resource)
    is_change = not same(_without_volatile(before), _without_volatile(after))
    instance.resource = with_member(after, "settings.settingsVersion", _version_after(before, moves=is_change))


def bump_primary_version(sql: CloudSql, operation: LongRunningOperation, instance: StoredInstance) -> None:
    """Moves the settings version of the primary when a replica is created or deleted."""
    primary = sql.state.instances.get(primary_key(operation.project, instance.resource))
    if primary is not None and operation.type in ("CREATE_REPLICA", "DELETE"):
        version = _version_after(primary.resource, moves=True)
        primary.resource = with_member(primary.resource, "settings.settingsVersion", version)


def primary_key(project: str, resource: JsonBody) -> str:
    """The key of a replica's primary; for an instance without one, a key that does not exist."""
    name = str(resource.get("masterInstanceName", ""))
    return f"{project}/{name.rpartition(':')[2]}"


def drop_oldest_operations(state: SqlState) -> None:
    """Drops the oldest finished operations."""
    for name in [one.name for one in state.operations.values() if one.is_finished][:-_MAX_FINISHED]:
        del state.operations[name]


def _without_volatile(resource: JsonBody) -> JsonBody:
    for path in _VOLATILE:
        resource = without_member(resource, path)
    return resource


def _version_after(resource: JsonBody, *, moves: bool) -> str:
    version = int(resource["settings"].get("settingsVersion", "0"))
    return str(version + 1 if moves else version)


def _time(seconds: float) -> str:
    return timestamp(datetime.fromtimestamp(seconds, UTC))


def running_instance(sql: CloudSql, call: ServiceCall) -> StoredInstance:
    """The instance in the path; refuses one that does not exist or does not run."""
    instance = sql.state.instances.get(f"{call.part('project')}/{call.part('instance')}")
    if instance is None:
        raise api_errors.no_instance()
    is_stopped = member(instance.resource, "settings.activationPolicy") == "NEVER"
    if is_stopped or instance.resource.get("state") != "RUNNABLE":
        raise api_errors.not_running()
    return instance


def body_for_path(call: ServiceCall, body: JsonBody) -> JsonBody:
    """`body`; refuses one that names another instance or project than the path."""
    for name in ("instance", "project"):
        if body.get(name, call.part(name)) != call.part(name):
            raise api_errors.invalid(f"The {name} in the body ({body[name]}) is not the one in the path")
    return body
