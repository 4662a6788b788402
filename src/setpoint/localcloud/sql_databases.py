"""The databases of an instance."""

from typing import Final

from setpoint.core.canonical import digest
from setpoint.localcloud import refusals
from setpoint.localcloud.operations import CloudSql, Wanted, refuse_while_busy, start
from setpoint.localcloud.routes import Call
from setpoint.localcloud.schema import Nulls, kept, read
from setpoint.localcloud.sql_inside import inside, opened
from setpoint.localcloud.sql_outputs import instance_link
from setpoint.localcloud.sql_schema import DATABASE
from setpoint.localcloud.sql_state import PutDatabase, RemoveDatabase
from setpoint.localcloud.sql_versions import Engine, engine_of
from setpoint.localcloud.trees import Tree, merge_patch

_FIRST: Final = {
    Engine.MYSQL: ("information_schema", "mysql", "performance_schema", "sys"),
    Engine.POSTGRES: ("postgres",),
    Engine.SQLSERVER: ("master", "model", "msdb", "tempdb"),
}
_MYSQL_COLLATIONS: Final = {
    "ascii": "ascii_general_ci",
    "binary": "binary",
    "latin1": "latin1_swedish_ci",
    "utf8": "utf8_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "utf8mb4": "utf8mb4_0900_ai_ci",
}


def initial_databases(project: str, instance: str, database_version: str) -> dict[str, Tree]:
    """What is there from the beginning."""
    place = {"instance": instance, "kind": "sql#database", "project": project}
    names = _FIRST[engine_of(database_version)]
    return {name: {**place, "name": name, **_text_form({}, database_version)} for name in names}


def get_database(sql: CloudSql, call: Call) -> Tree:
    """`GET …/databases/{database}`."""
    return _view(find_database(sql, call))


def list_databases(sql: CloudSql, call: Call) -> Tree:
    """`GET …/databases`."""
    instance = opened(sql, call)
    items = [_view(instance.databases[name]) for name in sorted(instance.databases)]
    return {"items": items, "kind": "sql#databasesList"} if items else {"kind": "sql#databasesList"}


def insert_database(sql: CloudSql, call: Call) -> Tree:
    """`POST …/databases`."""
    instance = opened(sql, call)
    body = inside(call, read(DATABASE, call.body))
    name = str(body.get("name", ""))
    if not name or len(name) > 64:
        raise refusals.invalid(f"Invalid database name ({name})")
    if name in instance.databases:
        raise refusals.already_exists(f"Database {name}")
    place = {"instance": call.part("instance"), "project": call.part("project")}
    resource = {**kept(DATABASE, body), **place, **_text_form(body, instance.resource["databaseVersion"])}
    return _write(sql, call, "CREATE_DATABASE", resource)


def put_database(sql: CloudSql, call: Call) -> Tree:
    """`PUT …/databases/{database}`: what the body leaves out goes back to its default."""
    return _change(sql, call, inside(call, read(DATABASE, call.body)), {})


def patch_database(sql: CloudSql, call: Call) -> Tree:
    """`PATCH …/databases/{database}`: a JSON merge."""
    body = inside(call, read(DATABASE, call.body, Nulls.REMOVE))
    base = kept(DATABASE, find_database(sql, call))
    if body.get("charset") not in (None, base.get("charset")):
        base.pop("collation", None)
    return _change(sql, call, body, base)


def delete_database(sql: CloudSql, call: Call) -> Tree:
    """`DELETE …/databases/{database}`."""
    name = str(find_database(sql, call)["name"])
    return _start(sql, call, "DELETE_DATABASE", RemoveDatabase(name))


def find_database(sql: CloudSql, call: Call) -> Tree:
    """The database that the path names; a 404 when there is none."""
    database = opened(sql, call).databases.get(call.part("database"))
    if database is None:
        raise refusals.not_found()
    return database


def _change(sql: CloudSql, call: Call, body: Tree, base: Tree) -> Tree:
    live = find_database(sql, call)
    wanted = merge_patch(base, body)
    if wanted.get("name", live["name"]) != live["name"]:
        raise refusals.invalid(f"The name of a database cannot change from {live['name']} to {wanted['name']}")
    version = opened(sql, call).resource["databaseVersion"]
    is_fixed = engine_of(version) is Engine.POSTGRES
    # PostgreSQL decides both when it creates the database, so silence keeps them.
    text_form = _text_form({**live, **wanted} if is_fixed else wanted, version)
    for field in ("charset", "collation"):
        if is_fixed and str(text_form[field]).lower() != str(live[field]).lower():
            change = f"{field} cannot change from {live[field]} to {text_form[field]}"
            raise refusals.invalid(f"{change}: it is fixed when the database is created")
    place = {"instance": live["instance"], "name": live["name"], "project": live["project"]}
    return _write(sql, call, "UPDATE_DATABASE", {**kept(DATABASE, wanted), **place, **text_form})


def _text_form(body: Tree, database_version: str) -> Tree:
    match engine_of(database_version):
        case Engine.POSTGRES:
            return {"charset": body.get("charset", "UTF8"), "collation": body.get("collation", "en_US.UTF8")}
        case Engine.SQLSERVER:
            default = "SQL_Latin1_General_CP1_CI_AS"
            return {"charset": body.get("charset", "UTF8"), "collation": body.get("collation", default)}
        case Engine.MYSQL:
            return _mysql_text_form(body, is_old=database_version.startswith("MYSQL_5"))


def _mysql_text_form(body: Tree, *, is_old: bool) -> Tree:
    collation = body.get("collation")
    from_collation = collation.partition("_")[0] if collation else None
    charset = str(body.get("charset") or from_collation or ("utf8" if is_old else "utf8mb4"))
    default = _MYSQL_COLLATIONS.get(charset.lower())
    if default is None:
        raise refusals.invalid(f"Unknown character set: '{charset}'")
    if is_old and charset.lower() == "utf8mb4":
        default = "utf8mb4_general_ci"
    if collation and collation.lower().partition("_")[0] != charset.lower():
        raise refusals.invalid(f"COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'")
    return {"charset": charset, "collation": collation or default}


def _write(sql: CloudSql, call: Call, type_: str, resource: Tree) -> Tree:
    engine = engine_of(opened(sql, call).resource["databaseVersion"])
    if resource.get("sqlserverDatabaseDetails") and engine is not Engine.SQLSERVER:
        raise refusals.invalid(f"sqlserverDatabaseDetails is for SQL Server, and {call.part('instance')} is {engine}")
    return _start(sql, call, type_, PutDatabase(str(resource["name"]), resource))


def _start(sql: CloudSql, call: Call, type_: str, effect: PutDatabase | RemoveDatabase) -> Tree:
    project, instance = call.part("project"), call.part("instance")
    refuse_while_busy(sql.state, f"{project}/{instance}")
    link = f"{instance_link(project, instance)}/databases/{effect.name}"
    return start(sql, Wanted(type_, project, instance, effect, target_link=link), call.now)


def _view(database: Tree) -> Tree:
    link = f"{instance_link(database['project'], database['instance'])}/databases/{database['name']}"
    return {**database, "etag": digest(database), "selfLink": link}
