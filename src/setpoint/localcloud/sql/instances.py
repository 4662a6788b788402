"""Cloud SQL instances: get, list, insert, clone, patch, update, delete."""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from setpoint.core.values.canonical import digest
from setpoint.localcloud import api_errors
from setpoint.localcloud.routing import ServiceCall, page
from setpoint.localcloud.schema import (
    JsonBody,
    NullMeaning,
    client_fields,
    member,
    merge_patch,
    validate,
    with_member,
    without_member,
)
from setpoint.localcloud.sql.databases import initial_databases
from setpoint.localcloud.sql.defaults import (
    instance_outputs,
    keep_unspecified_fields,
    with_defaults,
    without_rechosen_fields,
)
from setpoint.localcloud.sql.operations import (
    CloudSql,
    OperationRequest,
    PutInstance,
    RemoveInstance,
    StoredInstance,
    primary_key,
    refuse_while_busy,
    running_operations,
    start_operation,
)
from setpoint.localcloud.sql.rules import (
    DatabaseEngine,
    check_change,
    check_instance,
    check_name,
    check_replica,
    engine_of,
)
from setpoint.localcloud.sql.schema import CLONE, INSTANCE
from setpoint.localcloud.sql.users import initial_users

# The state of an instance while an operation of this type runs.
_STATES: Final = {"UPDATE": "MAINTENANCE", "DELETE": "PENDING_DELETE"}


# --- Reading ----------------------------------------------------------------------------------------------------------


def get_instance(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`GET …/instances/{instance}`."""
    return instance_view(sql, instance_key(call))


def list_instances(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`GET …/instances`. A filter is accepted, and ignored."""
    project = call.part("project")
    keys = [key for key in sql.state.instances if key.startswith(f"{project}/")]
    items, token = page(keys, str, call)
    result: JsonBody = {"kind": "sql#instancesList"}
    if items:
        result["items"] = [instance_view(sql, key) for key in items]
    if token is not None:
        result["nextPageToken"] = token
    return result


def instance_view(sql: CloudSql, key: str) -> JsonBody:
    """The instance as the body of a GET, with the effect of running operations on its state."""
    instance = find_instance(sql, key)
    resource = instance.resource
    for operation in running_operations(sql.state, key):
        if operation.key == key and operation.type in _STATES:
            resource = {**resource, "state": _STATES[operation.type]}
    if resource.get("state") == "PENDING_CREATE":
        resource = without_member(resource, "ipAddresses")
    replicas = replicas_of(sql, key)
    if replicas:
        resource = {**resource, "replicaNames": replicas}
    resource = merge_patch(resource, instance.overrides)
    return {**resource, "etag": digest(resource)}


def find_instance(sql: CloudSql, key: str) -> StoredInstance:
    """The instance with this key; a 404 when there is none."""
    instance = sql.state.instances.get(key)
    if instance is None:
        raise api_errors.no_instance()
    return instance


def instance_key(call: ServiceCall) -> str:
    """The key of the instance that the path names."""
    return f"{call.part('project')}/{call.part('instance')}"


def replicas_of(sql: CloudSql, key: str) -> list[str]:
    """The names of all replicas of an instance."""
    project, _, _ = key.partition("/")
    return sorted(
        other.resource["name"]
        for other_key, other in sql.state.instances.items()
        if other_key.startswith(f"{project}/")
        and "masterInstanceName" in other.resource
        and primary_key(project, other.resource) == key
    )


# --- Creating ---------------------------------------------------------------------------------------------------------


def insert_instance(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`POST …/instances`."""
    project = call.part("project")
    body = validate(INSTANCE, call.body)
    name = str(body.get("name", ""))
    check_name(project, name)
    if "maintenanceVersion" in body:
        raise api_errors.invalid("The maintenance version cannot be chosen when an instance is created")
    refuse_taken_name(sql, f"{project}/{name}", call.now)
    primary = primary_of(sql, project, body)
    wanted = with_defaults(
        inherit_from_primary(client_fields(INSTANCE, body), primary) if primary else client_fields(INSTANCE, body)
    )
    check_instance(wanted)
    engine = engine_of(wanted["databaseVersion"])
    if engine is DatabaseEngine.SQLSERVER and not body.get("rootPassword"):
        raise api_errors.invalid("A SQL Server instance must be created with a root password")
    created = StoredInstance(
        new_resource(project, wanted, call.now),
        initial_users(project, name, engine, body.get("rootPassword")),
        initial_databases(project, name, wanted["databaseVersion"]),
    )
    if primary is None:
        return create_instance(sql, call, created, "CREATE")
    check_replica(wanted, primary.resource)
    return create_instance(sql, call, created, "CREATE_REPLICA")


def clone_instance(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`POST …/instances/{instance}/clone`."""
    project, source = call.part("project"), writable_instance(sql, instance_key(call))
    context = validate(CLONE, call.body).get("cloneContext", {})
    name = str(context.get("destinationInstanceName", ""))
    check_name(project, name)
    refuse_taken_name(sql, f"{project}/{name}", call.now)
    wanted = client_config(source.resource)
    for path in ("masterInstanceName", "instanceType", "maintenanceVersion", "replicaConfiguration"):
        wanted = without_member(wanted, path)
    wanted = {**wanted, "name": name}
    for option, path in (
        ("preferredZone", "settings.locationPreference.zone"),
        ("preferredSecondaryZone", "settings.locationPreference.secondaryZone"),
        ("allocatedIpRange", "settings.ipConfiguration.allocatedIpRange"),
    ):
        if option in context:
            wanted = with_member(wanted, path, context[option])
    wanted = with_defaults(wanted)
    check_instance(wanted)
    copy = StoredInstance(
        new_resource(project, wanted, call.now),
        [replace(user, resource={**user.resource, "instance": name}) for user in source.users],
        {one: {**database, "instance": name} for one, database in source.databases.items()},
    )
    return create_instance(sql, call, copy, "CLONE")


def create_instance(sql: CloudSql, call: ServiceCall, instance: StoredInstance, type_: str) -> JsonBody:
    """Stores a new instance in PENDING_CREATE, and starts the operation that creates it."""
    project, resource = call.part("project"), instance.resource
    key = f"{project}/{resource['name']}"
    sql.state.instances[key] = StoredInstance(
        {**resource, "state": "PENDING_CREATE"}, instance.users, instance.databases
    )
    target: str | None = None
    locks: tuple[str, ...] = ()
    if type_ == "CREATE_REPLICA":
        target, locks = resource["masterInstanceName"], (primary_key(project, resource),)
    elif type_ == "CLONE":
        locks = (instance_key(call),)
    operation = OperationRequest(
        type_, project, resource["name"], PutInstance(resource), target_id=target, also_locks=locks
    )
    return start_operation(sql, operation, call.now)


def refuse_taken_name(sql: CloudSql, key: str, now: datetime) -> None:
    """Refuses the name of an instance that exists, or was deleted a short time ago."""
    if key in sql.state.instances:
        raise api_errors.instance_exists()
    set_free = sql.state.deleted.get(key)
    if set_free is not None and now.timestamp() < set_free + sql.timing.name_reserved_seconds:
        raise api_errors.instance_exists(" The name of a deleted instance cannot be used again for a time.")


def primary_of(sql: CloudSql, project: str, body: JsonBody) -> StoredInstance | None:
    """The primary of a new replica; None for an instance that is none."""
    if "masterInstanceName" not in body:
        if body.get("instanceType") == "READ_REPLICA_INSTANCE":
            raise api_errors.invalid("A read replica must have a masterInstanceName")
        return None
    key = primary_key(project, body)
    if key not in sql.state.instances:
        raise api_errors.invalid(f"The primary instance {body['masterInstanceName']} does not exist")
    return writable_instance(sql, key)


def inherit_from_primary(wanted: JsonBody, primary: StoredInstance) -> JsonBody:
    """A new replica with the unspecified fields of its primary, and the primary's full name."""
    wanted = {**wanted, "masterInstanceName": f"{primary.resource['project']}:{primary.resource['name']}"}
    for path in ("databaseVersion", "region", "settings.dataDiskSizeGb"):
        if member(wanted, path) is None:
            wanted = with_member(wanted, path, member(primary.resource, path))
    return wanted


def new_resource(project: str, wanted: JsonBody, now: datetime) -> JsonBody:
    """A new instance with its outputs, at settings version 1."""
    resource = {**wanted, **instance_outputs(project, wanted, now)}
    return with_member(resource, "settings.settingsVersion", "1")


# --- Changing ---------------------------------------------------------------------------------------------------------


def patch_instance(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`PATCH …/instances/{instance}`: a merge patch; null resets a field to its default."""
    instance = writable_instance(sql, instance_key(call))
    body = validate(INSTANCE, call.body, NullMeaning.REMOVE)
    if set(body) <= {"kind"}:
        raise api_errors.invalid("The patch is empty")
    refuse_stale_settings(instance, body)
    base = without_rechosen_fields(client_config(instance.resource), body)
    return change_instance(sql, call, instance, merge_patch(base, body))


def put_instance(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`PUT …/instances/{instance}`: a replacement; unspecified fields go back to their defaults."""
    instance = writable_instance(sql, instance_key(call))
    body = validate(INSTANCE, call.body)
    refuse_stale_settings(instance, body)
    return change_instance(sql, call, instance, keep_unspecified_fields(body, client_config(instance.resource)))


def change_instance(sql: CloudSql, call: ServiceCall, instance: StoredInstance, wanted: JsonBody) -> JsonBody:
    """Validates a change of an instance, and starts the operation for it."""
    before = with_defaults(client_config(instance.resource))
    after = with_defaults(client_config(wanted))
    check_change(client_config(before), client_config(after))
    check_instance(after)
    project = call.part("project")
    created = datetime.fromisoformat(instance.resource["createTime"])
    resource = {**after, **instance_outputs(project, after, created)}
    return start_operation(
        sql, OperationRequest("UPDATE", project, call.part("instance"), PutInstance(resource)), call.now
    )


def writable_instance(sql: CloudSql, key: str) -> StoredInstance:
    """The instance; refuses one that does not exist, is locked by an operation, or failed."""
    instance = find_instance(sql, key)
    refuse_while_busy(sql.state, key)
    if instance.resource.get("state") != "RUNNABLE":
        raise api_errors.wrong_state()
    return instance


def refuse_stale_settings(instance: StoredInstance, body: JsonBody) -> None:
    """Refuses a request with an outdated settings version (optimistic concurrency)."""
    sent = member(body, "settings.settingsVersion")
    if sent is not None and sent != instance.resource["settings"]["settingsVersion"]:
        raise api_errors.stale_settings()


def client_config(resource: JsonBody) -> JsonBody:
    """The fields of an instance that clients set."""
    return without_member(client_fields(INSTANCE, resource), "settings.settingsVersion")


# --- Deleting ---------------------------------------------------------------------------------------------------------


def delete_instance(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`DELETE …/instances/{instance}`."""
    key = instance_key(call)
    instance = find_instance(sql, key)
    refuse_while_busy(sql.state, key)
    if member(instance.resource, "settings.deletionProtectionEnabled"):
        raise api_errors.deletion_protected()
    if replicas_of(sql, key):
        raise api_errors.has_replicas()
    return start_operation(
        sql, OperationRequest("DELETE", call.part("project"), call.part("instance"), RemoveInstance()), call.now
    )
