"""The methods of the Cloud SQL Admin API, v1beta4, that the local cloud has."""

from typing import Final

from setpoint.localcloud import refusals
from setpoint.localcloud.operations import CloudSql, settle, view
from setpoint.localcloud.paging import page
from setpoint.localcloud.routes import Answer, Call, Route, dispatch
from setpoint.localcloud.sql_databases import (
    delete_database,
    get_database,
    insert_database,
    list_databases,
    patch_database,
    put_database,
)
from setpoint.localcloud.sql_instances import (
    clone_instance,
    delete_instance,
    get_instance,
    insert_instance,
    list_instances,
    patch_instance,
    put_instance,
)
from setpoint.localcloud.sql_users import delete_user, get_user, insert_user, list_users, update_user
from setpoint.localcloud.trees import Tree

_PAGES: Final = frozenset({"maxResults", "pageToken"})


def answer(sql: CloudSql, call: Call) -> Answer:
    """The answer of the service to one request, at the time of the request."""
    settle(sql, call.now)
    return dispatch(ROUTES, sql, call)


def get_operation(sql: CloudSql, call: Call) -> Tree:
    """`GET …/operations/{operation}`."""
    operation = sql.state.operations.get(call.part("operation"))
    if operation is None or operation.project != call.part("project"):
        raise refusals.not_found()
    return view(operation, call.now)


def list_operations(sql: CloudSql, call: Call) -> Tree:
    """`GET …/operations?instance=`: the newest first."""
    project, instance = call.part("project"), call.query.get("instance")
    found = [
        one
        for one in reversed(sql.state.operations.values())
        if one.project == project and instance in (None, one.key.partition("/")[2])
    ]
    order = {one.name: f"{position:06}" for position, one in enumerate(found)}
    items, token = page(found, lambda one: order[one.name], call)
    result: Tree = {"items": [view(one, call.now) for one in items], "kind": "sql#operationsList"}
    return result if token is None else {**result, "nextPageToken": token}


_P: Final = "/projects/{project}"
_I: Final = f"{_P}/instances"
_ONE: Final = f"{_I}/{{instance}}"
_USERS: Final = f"{_ONE}/users"
_DATABASES: Final = f"{_ONE}/databases"
_DATABASE: Final = f"{_DATABASES}/{{database}}"
_USER_KEY: Final = frozenset({"name", "host"})

ROUTES: Final[tuple[Route[CloudSql], ...]] = (
    Route("GET", _I, list_instances, _PAGES | {"filter"}),
    Route("POST", _I, insert_instance),
    Route("GET", _ONE, get_instance),
    Route("PATCH", _ONE, patch_instance),
    Route("PUT", _ONE, put_instance),
    Route("DELETE", _ONE, delete_instance),
    Route("POST", f"{_ONE}/clone", clone_instance),
    Route("GET", _USERS, list_users),
    Route("POST", _USERS, insert_user),
    Route("PUT", _USERS, update_user, _USER_KEY),
    Route("DELETE", _USERS, delete_user, _USER_KEY),
    Route("GET", f"{_USERS}/{{name}}", get_user, frozenset({"host"})),
    Route("GET", _DATABASES, list_databases),
    Route("POST", _DATABASES, insert_database),
    Route("GET", _DATABASE, get_database),
    Route("PUT", _DATABASE, put_database),
    Route("PATCH", _DATABASE, patch_database),
    Route("DELETE", _DATABASE, delete_database),
    Route("GET", f"{_P}/operations", list_operations, _PAGES | {"instance", "filter"}),
    Route("GET", f"{_P}/operations/{{operation}}", get_operation),
)
