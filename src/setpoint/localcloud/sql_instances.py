"""Cloud SQL instances: read, created, changed, deleted."""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from setpoint.core.canonical import digest
from setpoint.localcloud import refusals
from setpoint.localcloud.operations import (
    CloudSql,
    Wanted,
    primary_key,
    refuse_while_busy,
    running,
    start,
)
from setpoint.localcloud.paging import page
from setpoint.localcloud.routes import Call
from setpoint.localcloud.schema import Nulls, kept, read
from setpoint.localcloud.sql_databases import initial_databases
from setpoint.localcloud.sql_defaults import completed, keep_silent_fields, ready_for_patch
from setpoint.localcloud.sql_outputs import outputs
from setpoint.localcloud.sql_rules import check_change, check_instance, check_name, check_replica
from setpoint.localcloud.sql_schema import CLONE, INSTANCE
from setpoint.localcloud.sql_state import Instance, PutInstance, RemoveInstance
from setpoint.localcloud.sql_users import initial_users
from setpoint.localcloud.sql_versions import Engine, engine_of
from setpoint.localcloud.trees import Tree, member, merge_patch, with_member, without_member

# What a running operation makes of the state.
_STATES: Final = {"UPDATE": "MAINTENANCE", "DELETE": "PENDING_DELETE"}


# --- Reading ---------------------------------------------------------------------------------------------------------


def get_instance(sql: CloudSql, call: Call) -> Tree:
    """`GET …/instances/{instance}`."""
    return view(sql, key_of(call))


def list_instances(sql: CloudSql, call: Call) -> Tree:
    """`GET …/instances`. A filter is accepted, and ignored."""
    project = call.part("project")
    keys = [key for key in sql.state.instances if key.startswith(f"{project}/")]
    items, token = page(keys, str, call)
    result: Tree = {"kind": "sql#instancesList"}
    if items:
        result["items"] = [view(sql, key) for key in items]
    if token is not None:
        result["nextPageToken"] = token
    return result


def view(sql: CloudSql, key: str) -> Tree:
    """The instance as it looks from outside, now."""
    instance = find(sql, key)
    resource = instance.resource
    for operation in running(sql.state, key):
        if operation.key == key and operation.type in _STATES:
            resource = {**resource, "state": _STATES[operation.type]}
    if resource.get("state") == "PENDING_CREATE":
        resource = without_member(resource, "ipAddresses")
    replicas = replicas_of(sql, key)
    if replicas:
        resource = {**resource, "replicaNames": replicas}
    resource = merge_patch(resource, instance.overrides)
    return {**resource, "etag": digest(resource)}


def find(sql: CloudSql, key: str) -> Instance:
    """The instance of that key; a 404 when there is none."""
    instance = sql.state.instances.get(key)
    if instance is None:
        raise refusals.no_instance()
    return instance


def key_of(call: Call) -> str:
    """The key of the instance that the path names."""
    return f"{call.part('project')}/{call.part('instance')}"


def replicas_of(sql: CloudSql, key: str) -> list[str]:
    """The names of all instances that follow this one."""
    project, _, _ = key.partition("/")
    others = sql.state.instances.items()
    return sorted(
        other.resource["name"]
        for other_key, other in others
        if other_key.startswith(f"{project}/")
        and "masterInstanceName" in other.resource
        and primary_key(project, other.resource) == key
    )


# --- Creating --------------------------------------------------------------------------------------------------------


def insert_instance(sql: CloudSql, call: Call) -> Tree:
    """`POST …/instances`."""
    project = call.part("project")
    body = read(INSTANCE, call.body)
    name = str(body.get("name", ""))
    check_name(project, name)
    if "maintenanceVersion" in body:
        raise refusals.invalid("The maintenance version cannot be chosen when an instance is created")
    refuse_taken_name(sql, f"{project}/{name}", call.now)
    primary = primary_of(sql, project, body)
    wanted = completed(follow(kept(INSTANCE, body), primary) if primary else kept(INSTANCE, body))
    check_instance(wanted)
    engine = engine_of(wanted["databaseVersion"])
    if engine is Engine.SQLSERVER and not body.get("rootPassword"):
        raise refusals.invalid("A SQL Server instance must be created with a root password")
    created = Instance(
        new_resource(project, wanted, call.now),
        initial_users(project, name, engine, body.get("rootPassword")),
        initial_databases(project, name, wanted["databaseVersion"]),
    )
    if primary is None:
        return create(sql, call, created, "CREATE")
    check_replica(wanted, primary.resource)
    return create(sql, call, created, "CREATE_REPLICA")


def clone_instance(sql: CloudSql, call: Call) -> Tree:
    """`POST …/instances/{instance}/clone`."""
    project, source = call.part("project"), writable(sql, key_of(call))
    context = read(CLONE, call.body).get("cloneContext", {})
    name = str(context.get("destinationInstanceName", ""))
    check_name(project, name)
    refuse_taken_name(sql, f"{project}/{name}", call.now)
    wanted = config_of(source.resource)
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
    wanted = completed(wanted)
    check_instance(wanted)
    copy = Instance(
        new_resource(project, wanted, call.now),
        [replace(user, resource={**user.resource, "instance": name}) for user in source.users],
        {one: {**database, "instance": name} for one, database in source.databases.items()},
    )
    return create(sql, call, copy, "CLONE")


def create(sql: CloudSql, call: Call, instance: Instance, type_: str) -> Tree:
    """Puts a new instance on record, not running yet, and starts the operation that makes it run."""
    project, resource = call.part("project"), instance.resource
    key = f"{project}/{resource['name']}"
    sql.state.instances[key] = Instance({**resource, "state": "PENDING_CREATE"}, instance.users, instance.databases)
    target: str | None = None
    locks: tuple[str, ...] = ()
    if type_ == "CREATE_REPLICA":
        target, locks = resource["masterInstanceName"], (primary_key(project, resource),)
    elif type_ == "CLONE":
        locks = (key_of(call),)
    operation = Wanted(type_, project, resource["name"], PutInstance(resource), target_id=target, also_locks=locks)
    return start(sql, operation, call.now)


def refuse_taken_name(sql: CloudSql, key: str, now: datetime) -> None:
    """Refuses a name that an instance has, or had a short time ago."""
    if key in sql.state.instances:
        raise refusals.instance_exists()
    set_free = sql.state.deleted.get(key)
    if set_free is not None and now.timestamp() < set_free + sql.pace.name_reserved_seconds:
        raise refusals.instance_exists(" The name of a deleted instance cannot be used again for a time.")


def primary_of(sql: CloudSql, project: str, body: Tree) -> Instance | None:
    """The instance that a new one is to follow, if it is to follow any."""
    if "masterInstanceName" not in body:
        if body.get("instanceType") == "READ_REPLICA_INSTANCE":
            raise refusals.invalid("A read replica must have a masterInstanceName")
        return None
    key = primary_key(project, body)
    if key not in sql.state.instances:
        raise refusals.invalid(f"The primary instance {body['masterInstanceName']} does not exist")
    return writable(sql, key)


def follow(wanted: Tree, primary: Instance) -> Tree:
    """A replica is like its primary where it does not say otherwise, and calls it by its whole name."""
    wanted = {**wanted, "masterInstanceName": f"{primary.resource['project']}:{primary.resource['name']}"}
    for path in ("databaseVersion", "region", "settings.dataDiskSizeGb"):
        if member(wanted, path) is None:
            wanted = with_member(wanted, path, member(primary.resource, path))
    return wanted


def new_resource(project: str, wanted: Tree, now: datetime) -> Tree:
    """A complete instance with its outputs, at the first version of its settings."""
    resource = {**wanted, **outputs(project, wanted, now)}
    return with_member(resource, "settings.settingsVersion", "1")


# --- Changing --------------------------------------------------------------------------------------------------------


def patch_instance(sql: CloudSql, call: Call) -> Tree:
    """`PATCH …/instances/{instance}`: a JSON merge; null takes a field back to its default."""
    instance = writable(sql, key_of(call))
    body = read(INSTANCE, call.body, Nulls.REMOVE)
    if set(body) <= {"kind"}:
        raise refusals.invalid("The patch is empty")
    refuse_stale(instance, body)
    base = ready_for_patch(config_of(instance.resource), body)
    return change(sql, call, instance, merge_patch(base, body))


def put_instance(sql: CloudSql, call: Call) -> Tree:
    """`PUT …/instances/{instance}`: the body replaces; what it leaves out goes back to its default."""
    instance = writable(sql, key_of(call))
    body = read(INSTANCE, call.body)
    refuse_stale(instance, body)
    return change(sql, call, instance, keep_silent_fields(body, config_of(instance.resource)))


def change(sql: CloudSql, call: Call, instance: Instance, wanted: Tree) -> Tree:
    """Starts the operation that makes the instance as wanted, if that can be."""
    before = completed(config_of(instance.resource))
    after = completed(config_of(wanted))
    check_change(config_of(before), config_of(after))
    check_instance(after)
    project = call.part("project")
    created = datetime.fromisoformat(instance.resource["createTime"])
    resource = {**after, **outputs(project, after, created)}
    return start(sql, Wanted("UPDATE", project, call.part("instance"), PutInstance(resource)), call.now)


def writable(sql: CloudSql, key: str) -> Instance:
    """The instance, if it can be written to: there, not busy, not failed."""
    instance = find(sql, key)
    refuse_while_busy(sql.state, key)
    if instance.resource.get("state") != "RUNNABLE":
        raise refusals.wrong_state()
    return instance


def refuse_stale(instance: Instance, body: Tree) -> None:
    """Refuses a request that was made from older settings than the present ones."""
    sent = member(body, "settings.settingsVersion")
    if sent is not None and sent != instance.resource["settings"]["settingsVersion"]:
        raise refusals.stale_settings()


def config_of(resource: Tree) -> Tree:
    """The part of an instance that its owner decides."""
    return without_member(kept(INSTANCE, resource), "settings.settingsVersion")


# --- Deleting --------------------------------------------------------------------------------------------------------


def delete_instance(sql: CloudSql, call: Call) -> Tree:
    """`DELETE …/instances/{instance}`."""
    key = key_of(call)
    instance = find(sql, key)
    refuse_while_busy(sql.state, key)
    if member(instance.resource, "settings.deletionProtectionEnabled"):
        raise refusals.deletion_protected()
    if replicas_of(sql, key):
        raise refusals.has_replicas()
    return start(sql, Wanted("DELETE", call.part("project"), call.part("instance"), RemoveInstance()), call.now)
