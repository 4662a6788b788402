"""The databases of an instance: get, list, insert, update, patch, delete."""

from typing import Final

from setpoint.core.values.canonical import digest
from setpoint.localcloud import api_errors
from setpoint.localcloud.routing import ServiceCall
from setpoint.localcloud.schema import JsonBody, NullMeaning, client_fields, merge_patch, validate
from setpoint.localcloud.sql.defaults import instance_link
from setpoint.localcloud.sql.operations import (
    CloudSql,
    OperationRequest,
    PutDatabase,
    RemoveDatabase,
    body_for_path,
    refuse_while_busy,
    running_instance,
    start_operation,
)
from setpoint.localcloud.sql.rules import DatabaseEngine, engine_of
from setpoint.localcloud.sql.schema import DATABASE

_INITIAL: Final = {
    DatabaseEngine.MYSQL: ("information_schema", "mysql", "performance_schema", "sys"),
    DatabaseEngine.POSTGRES: ("postgres",),
    DatabaseEngine.SQLSERVER: ("master", "model", "msdb", "tempdb"),
}
_MYSQL_COLLATIONS: Final = {
    "ascii": "ascii_general_ci",
    "binary": "binary",
    "latin1": "latin1_swedish_ci",
    "utf8": "utf8_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "utf8mb4": "utf8mb4_0900_ai_ci",
}


def initial_databases(project: str, instance: str, database_version: str) -> dict[str, JsonBody]:
    """The databases of a new instance."""
    place = {"instance": instance, "kind": "sql#database", "project": project}
    names = _INITIAL[engine_of(database_version)]
    return {name: {**place, "name": name, **_charset_and_collation({}, database_version)} for name in names}


def get_database(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`GET …/databases/{database}`."""
    return _view(find_database(sql, call))


def list_databases(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`GET …/databases`."""
    instance = running_instance(sql, call)
    items = [_view(instance.databases[name]) for name in sorted(instance.databases)]
    return {"items": items, "kind": "sql#databasesList"} if items else {"kind": "sql#databasesList"}


def insert_database(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`POST …/databases`."""
    instance = running_instance(sql, call)
    body = body_for_path(call, validate(DATABASE, call.body))
    name = str(body.get("name", ""))
    if not name or len(name) > 64:
        raise api_errors.invalid(f"Invalid database name ({name})")
    if name in instance.databases:
        raise api_errors.already_exists(f"Database {name}")
    place = {"instance": call.part("instance"), "project": call.part("project")}
    resource = {
        **client_fields(DATABASE, body),
        **place,
        **_charset_and_collation(body, instance.resource["databaseVersion"]),
    }
    return _write(sql, call, "CREATE_DATABASE", resource)


def put_database(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`PUT …/databases/{database}`: unspecified fields go back to their defaults."""
    return _change(sql, call, body_for_path(call, validate(DATABASE, call.body)), {})


def patch_database(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`PATCH …/databases/{database}`: a merge patch."""
    body = body_for_path(call, validate(DATABASE, call.body, NullMeaning.REMOVE))
    base = client_fields(DATABASE, find_database(sql, call))
    if body.get("charset") not in (None, base.get("charset")):
        base.pop("collation", None)
    return _change(sql, call, body, base)


def delete_database(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`DELETE …/databases/{database}`."""
    name = str(find_database(sql, call)["name"])
    return _start(sql, call, "DELETE_DATABASE", RemoveDatabase(name))


def find_database(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """The database in the path; a 404 when there is none."""
    database = running_instance(sql, call).databases.get(call.part("database"))
    if database is None:
        raise api_errors.not_found()
    return database


def _change(sql: CloudSql, call: ServiceCall, body: JsonBody, base: JsonBody) -> JsonBody:
    live = find_database(sql, call)
    wanted = merge_patch(base, body)
    if wanted.get("name", live["name"]) != live["name"]:
        raise api_errors.invalid(f"The name of a database cannot change from {live['name']} to {wanted['name']}")
    version = running_instance(sql, call).resource["databaseVersion"]
    is_fixed = engine_of(version) is DatabaseEngine.POSTGRES
    # In PostgreSQL both are immutable: unspecified, they keep their values.
    encoding = _charset_and_collation({**live, **wanted} if is_fixed else wanted, version)
    for field in ("charset", "collation"):
        if is_fixed and str(encoding[field]).lower() != str(live[field]).lower():
            change = f"{field} cannot change from {live[field]} to {encoding[field]}"
            raise api_errors.invalid(f"{change}: it is fixed when the database is created")
    place = {"instance": live["instance"], "name": live["name"], "project": live["project"]}
    return _write(sql, call, "UPDATE_DATABASE", {**client_fields(DATABASE, wanted), **place, **encoding})


def _charset_and_collation(body: JsonBody, database_version: str) -> JsonBody:
    match engine_of(database_version):
        case DatabaseEngine.POSTGRES:
            return {"charset": body.get("charset", "UTF8"), "collation": body.get("collation", "en_US.UTF8")}
        case DatabaseEngine.SQLSERVER:
            default = "SQL_Latin1_General_CP1_CI_AS"
            return {"charset": body.get("charset", "UTF8"), "collation": body.get("collation", default)}
        case DatabaseEngine.MYSQL:
            return _mysql_charset_and_collation(body, is_old=database_version.startswith("MYSQL_5"))


def _mysql_charset_and_collation(body: JsonBody, *, is_old: bool) -> JsonBody:
    collation = body.get("collation")
    from_collation = collation.partition("_")[0] if collation else None
    charset = str(body.get("charset") or from_collation or ("utf8" if is_old else "utf8mb4"))
    default = _MYSQL_COLLATIONS.get(charset.lower())
    if default is None:
        raise api_errors.invalid(f"Unknown character set: '{charset}'")
    if is_old and charset.lower() == "utf8mb4":
        default = "utf8mb4_general_ci"
    if collation and collation.lower().partition("_")[0] != charset.lower():
        raise api_errors.invalid(f"COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'")
    return {"charset": charset, "collation": collation or default}


def _write(sql: CloudSql, call: ServiceCall, type_: str, resource: JsonBody) -> JsonBody:
    engine = engine_of(running_instance(sql, call).resource["databaseVersion"])
    if resource.get("sqlserverDatabaseDetails") and engine is not DatabaseEngine.SQLSERVER:
        raise api_errors.invalid(f"sqlserverDatabaseDetails is for SQL Server, and {call.part('instance')} is {engine}")
    return _start(sql, call, type_, PutDatabase(str(resource["name"]), resource))


def _start(sql: CloudSql, call: ServiceCall, type_: str, effect: PutDatabase | RemoveDatabase) -> JsonBody:
    project, instance = call.part("project"), call.part("instance")
    refuse_while_busy(sql.state, f"{project}/{instance}")
    link = f"{instance_link(project, instance)}/databases/{effect.name}"
    return start_operation(sql, OperationRequest(type_, project, instance, effect, target_link=link), call.now)


def _view(database: JsonBody) -> JsonBody:
    link = f"{instance_link(database['project'], database['instance'])}/databases/{database['name']}"
    return {**database, "etag": digest(database), "selfLink": link}
