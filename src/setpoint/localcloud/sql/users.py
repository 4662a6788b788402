"""The users of an instance, identified by name and host. Passwords are kept as salted hashes and only compared."""

import hashlib
import hmac
import secrets
from typing import Final

from msgspec.structs import replace

from setpoint.core.values.canonical import digest
from setpoint.localcloud import api_errors
from setpoint.localcloud.routing import ServiceCall
from setpoint.localcloud.schema import JsonBody, client_fields, validate
from setpoint.localcloud.sql.operations import (
    CloudSql,
    DatabaseUser,
    OperationRequest,
    PutUser,
    RemoveUser,
    StoredInstance,
    body_for_path,
    refuse_while_busy,
    running_instance,
    start_operation,
)
from setpoint.localcloud.sql.rules import DatabaseEngine, engine_of
from setpoint.localcloud.sql.schema import USER

_DETAILS: Final = ("databaseRoles", "passwordPolicy", "sqlserverUserDetails")
_DISABLED: Final = {"sqlserverUserDetails": {"disabled": True}}
_INITIAL: Final[dict[DatabaseEngine, dict[str, JsonBody]]] = {
    DatabaseEngine.MYSQL: {"root": {}},
    DatabaseEngine.POSTGRES: {"postgres": {}},
    DatabaseEngine.SQLSERVER: {
        "##MS_PolicyEventProcessingLogin##": _DISABLED,
        "##MS_PolicyTsqlExecutionLogin##": _DISABLED,
        "sqlserver": {"sqlserverUserDetails": {"serverRoles": ["CustomerDbRootRole"]}},
    },
}


def initial_users(project: str, instance: str, engine: DatabaseEngine, root_password: str | None) -> list[DatabaseUser]:
    """The users of a new instance. The root password is that of the last one."""
    place = {"instance": instance, "project": project}
    users = [_user(place, name, default_host(engine), more) for name, more in _INITIAL[engine].items()]
    if root_password:
        users[-1] = _with_password(users[-1], root_password)
    return users


def default_host(engine: DatabaseEngine) -> str:
    """The host of a user without one: MySQL identifies users by name and host, the other engines by name only."""
    return "%" if engine is DatabaseEngine.MYSQL else ""


def list_users(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`GET …/users`."""
    instance = running_instance(sql, call)
    items = [_view(user) for user in instance.users]
    return {"items": items, "kind": "sql#usersList"} if items else {"kind": "sql#usersList"}


def get_user(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`GET …/users/{name}?host=`."""
    instance = running_instance(sql, call)
    return _view(find_user(instance, call.part("name"), _host(instance, call)))


def insert_user(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`POST …/users`."""
    instance = running_instance(sql, call)
    body = body_for_path(call, validate(USER, call.body))
    engine = engine_of(instance.resource["databaseVersion"])
    requested = str(body.get("name", ""))
    name = _stored_name(requested, str(body.get("type", "BUILT_IN")), engine)
    if not name:
        raise api_errors.invalid("Missing parameter: name")
    host = str(body.get("host", default_host(engine)))
    if host and engine is not DatabaseEngine.MYSQL:
        raise api_errors.invalid(f"A user of {engine} has no host ({host})")
    if (name, host) in [(user.name, user.host) for user in instance.users]:
        raise api_errors.already_exists(f"User {name}@{host}")
    place = {"instance": call.part("instance"), "project": call.part("project")}
    more = _details(body)
    if body.get("type", "BUILT_IN") != "BUILT_IN":
        more["type"] = body["type"]
    user = _user(place, name, host, more)
    if name != requested:
        user = replace(user, resource={**user.resource, "iamEmail": requested})
    return _write(sql, call, "CREATE_USER", _with_password(user, body["password"]) if "password" in body else user)


def update_user(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`PUT …/users?name=&host=`: unspecified fields keep their values; a password policy is replaced as a whole."""
    instance = running_instance(sql, call)
    body = body_for_path(call, validate(USER, call.body))
    user = find_user(instance, _name_parameter(call), _host(instance, call))
    for key in ("name", "host"):
        if body.get(key, getattr(user, key)) != getattr(user, key):
            raise api_errors.invalid(f"The {key} of a user cannot change from {getattr(user, key)} to {body[key]}")
    if body.get("type", user.resource.get("type", "BUILT_IN")) != user.resource.get("type", "BUILT_IN"):
        raise api_errors.invalid("The type of a user is fixed when the user is created")
    changed = replace(user, resource={**user.resource, **_details(body)})
    return _write(
        sql, call, "UPDATE_USER", _with_password(changed, body["password"]) if "password" in body else changed
    )


def delete_user(sql: CloudSql, call: ServiceCall) -> JsonBody:
    """`DELETE …/users?name=&host=`."""
    instance = running_instance(sql, call)
    user = find_user(instance, _name_parameter(call), _host(instance, call))
    refuse_while_busy(sql.state, f"{call.part('project')}/{call.part('instance')}")
    effect = RemoveUser(user.name, user.host)
    return start_operation(
        sql, OperationRequest("DELETE_USER", call.part("project"), call.part("instance"), effect), call.now
    )


def find_user(instance: StoredInstance, name: str, host: str) -> DatabaseUser:
    """The user with this name and host; a 404 when there is none."""
    for user in instance.users:
        if (user.name, user.host) == (name, host):
            return user
    raise api_errors.not_found()


def password_matches(user: DatabaseUser, password: str) -> bool:
    """Whether the user could log in with `password`."""
    return matches_hash(user.salt, user.password_hash, password)


def _write(sql: CloudSql, call: ServiceCall, type_: str, user: DatabaseUser) -> JsonBody:
    refuse_while_busy(sql.state, f"{call.part('project')}/{call.part('instance')}")
    return start_operation(
        sql, OperationRequest(type_, call.part("project"), call.part("instance"), PutUser(user)), call.now
    )


def _details(body: JsonBody) -> JsonBody:
    return {name: value for name, value in body.items() if name in _DETAILS}


def _user(place: JsonBody, name: str, host: str, more: JsonBody) -> DatabaseUser:
    resource = {"host": host, "iamStatus": "IAM_STATUS_UNSPECIFIED", "kind": "sql#user", "name": name, **place}
    return DatabaseUser(
        name, host, {**resource, **client_fields(USER, more), "passwordPolicy": more.get("passwordPolicy", {})}
    )


def _with_password(user: DatabaseUser, password: str) -> DatabaseUser:
    salt, password_hash = salt_and_hash(password)
    return replace(user, salt=salt, password_hash=password_hash)


def _view(user: DatabaseUser) -> JsonBody:
    policy = {**user.resource["passwordPolicy"], "status": {}}
    return {**user.resource, "etag": digest(user.resource), "passwordPolicy": policy}


def _stored_name(name: str, type_: str, engine: DatabaseEngine) -> str:
    # MySQL stores only the part before the @ of an IAM user.
    return name.partition("@")[0] if engine is DatabaseEngine.MYSQL and type_ != "BUILT_IN" else name


def _name_parameter(call: ServiceCall) -> str:
    if "name" not in call.query:
        raise api_errors.missing_parameter("name")
    return call.query["name"]


def _host(instance: StoredInstance, call: ServiceCall) -> str:
    return call.query.get("host", default_host(engine_of(instance.resource["databaseVersion"])))


def salt_and_hash(password: str) -> tuple[str, str]:
    """A fresh salt, and the hash of `password` with it."""
    salt = secrets.token_hex(8)
    return salt, _hash(salt, password)


def matches_hash(salt: str, password_hash: str, password: str) -> bool:
    """Whether the hash is that of `password`; no password at all never matches."""
    return bool(password_hash) and hmac.compare_digest(password_hash, _hash(salt, password))


def _hash(salt: str, password: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), 1000).hex()
