"""The methods that the local cloud serves: of the Cloud SQL Admin API v1beta4 and of the Cloud Storage JSON API v1."""

from typing import Final

from setpoint.localcloud import api_errors
from setpoint.localcloud.routing import Route, ServiceCall, ServiceResponse, dispatch, page
from setpoint.localcloud.schema import JsonBody
from setpoint.localcloud.sql.databases import (
    delete_database,
    get_database,
    insert_database,
    list_databases,
    patch_database,
    put_database,
)
from setpoint.localcloud.sql.instances import (
    clone_instance,
    delete_instance,
    get_instance,
    insert_instance,
    list_instances,
    patch_instance,
    put_instance,
)
from setpoint.localcloud.sql.operations import CloudSql, finish_due_operations, operation_view
from setpoint.localcloud.sql.users import delete_user, get_user, insert_user, list_users, update_user
from setpoint.localcloud.storage.buckets import (
    CloudStorage,
    delete_bucket,
    get_bucket,
    insert_bucket,
    list_buckets,
    lock_retention_policy,
    patch_bucket,
)
from setpoint.localcloud.storage.objects import delete_object, get_object, insert_object, list_objects

_SQL_PAGES: Final = frozenset({"maxResults", "pageToken"})


def answer_sql(sql: CloudSql, call: ServiceCall) -> ServiceResponse:
    """The response of Cloud SQL to one request; due operations finish first."""
    finish_due_operations(sql, call.now)
    return dispatch(SQL_ROUTES, sql, call)


def get_operation(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`GET …/operations/{operation}`."""
    operation = sql.state.operations.get(call.part("operation"))
    if operation is None or operation.project != call.part("project"):
        raise api_errors.not_found()
    return operation_view(operation, call.now)


def list_operations(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`GET …/operations?instance=`: the newest first."""
    project, instance = call.part("project"), call.query.get("instance")
    found = [
        one
        for one in reversed(sql.state.operations.values())
        if one.project == project and instance in (None, one.key.partition("/")[2])
    ]
    order = {one.name: f"{position:06}" for position, one in enumerate(found)}
    items, token = page(found, lambda one: order[one.name], call)
    result: JsonBody = {"items": [operation_view(one, call.now) for one in items], "kind": "sql#operationsList"}
    return result if token is None else {**result, "nextPageToken": token}


_PROJECT: Final = "/projects/{project}"
_INSTANCES: Final = f"{_PROJECT}/instances"
_INSTANCE: Final = f"{_INSTANCES}/{{instance}}"
_USERS: Final = f"{_INSTANCE}/users"
_DATABASES: Final = f"{_INSTANCE}/databases"
_DATABASE: Final = f"{_DATABASES}/{{database}}"
_USER_KEY: Final = frozenset({"name", "host"})

SQL_ROUTES: Final[tuple[Route[CloudSql], ...]] = (
    Route("GET", _INSTANCES, list_instances, _SQL_PAGES | {"filter"}),
    Route("POST", _INSTANCES, insert_instance),
    Route("GET", _INSTANCE, get_instance),
    Route("PATCH", _INSTANCE, patch_instance),
    Route("PUT", _INSTANCE, put_instance),
    Route("DELETE", _INSTANCE, delete_instance),
    Route("POST", f"{_INSTANCE}/clone", clone_instance),
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
    Route("GET", f"{_PROJECT}/operations", list_operations, _SQL_PAGES | {"instance", "filter"}),
    Route("GET", f"{_PROJECT}/operations/{{operation}}", get_operation),
)


_PRECONDITIONS: Final = frozenset({"ifMetagenerationMatch", "ifMetagenerationNotMatch"})
_PROJECTION: Final = frozenset({"projection"})
_STORAGE_PAGES: Final = frozenset({"maxResults", "pageToken", "prefix"})
_OBJECT_VERSION: Final = _PRECONDITIONS | {"generation"}

_BUCKET: Final = "/b/{bucket}"
_OBJECTS: Final = f"{_BUCKET}/o"
_OBJECT: Final = f"{_OBJECTS}/{{object}}"

STORAGE_ROUTES: Final[tuple[Route[CloudStorage], ...]] = (
    Route("GET", "/b", list_buckets, _STORAGE_PAGES | _PROJECTION | {"project"}),
    Route("POST", "/b", insert_bucket, _PROJECTION | {"project"}),
    Route("GET", _BUCKET, get_bucket, _PRECONDITIONS | _PROJECTION),
    Route("PATCH", _BUCKET, patch_bucket, _PRECONDITIONS | _PROJECTION),
    Route("DELETE", _BUCKET, delete_bucket, _PRECONDITIONS),
    Route("POST", f"{_BUCKET}/lockRetentionPolicy", lock_retention_policy, frozenset({"ifMetagenerationMatch"})),
    Route("GET", _OBJECTS, list_objects, _STORAGE_PAGES | _PROJECTION | {"delimiter", "versions"}),
    Route("GET", _OBJECT, get_object, _OBJECT_VERSION | _PROJECTION),
    Route("DELETE", _OBJECT, delete_object, _OBJECT_VERSION),
    Route("POST", f"/upload{_OBJECTS}", insert_object, frozenset({"name"})),
)


def answer_storage(storage: CloudStorage, call: ServiceCall) -> ServiceResponse:
    """The response of Cloud Storage to one request."""
    return dispatch(STORAGE_ROUTES, storage, call)
