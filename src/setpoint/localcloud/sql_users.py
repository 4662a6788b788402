"""The users of an instance, told apart by name and host."""

from typing import Final

from msgspec.structs import replace

from setpoint.core.canonical import digest
from setpoint.localcloud import refusals
from setpoint.localcloud.operations import CloudSql, Wanted, refuse_while_busy, start
from setpoint.localcloud.passwords import is_password, salt_and_hash
from setpoint.localcloud.routes import Call
from setpoint.localcloud.schema import kept, read
from setpoint.localcloud.sql_inside import inside, opened
from setpoint.localcloud.sql_schema import USER
from setpoint.localcloud.sql_state import Instance, PutUser, RemoveUser, User
from setpoint.localcloud.sql_versions import Engine, engine_of
from setpoint.localcloud.trees import Tree

_DETAILS: Final = ("databaseRoles", "passwordPolicy", "sqlserverUserDetails")
_DISABLED: Final = {"sqlserverUserDetails": {"disabled": True}}
_FIRST: Final[dict[Engine, dict[str, Tree]]] = {
    Engine.MYSQL: {"root": {}},
    Engine.POSTGRES: {"postgres": {}},
    Engine.SQLSERVER: {
        "##MS_PolicyEventProcessingLogin##": _DISABLED,
        "##MS_PolicyTsqlExecutionLogin##": _DISABLED,
        "sqlserver": {"sqlserverUserDetails": {"serverRoles": ["CustomerDbRootRole"]}},
    },
}


def initial_users(project: str, instance: str, engine: Engine, root_password: str | None) -> list[User]:
    """Who is there from the beginning. The last of them is the one that the root password belongs to."""
    place = {"instance": instance, "project": project}
    users = [_user(place, name, default_host(engine), more) for name, more in _FIRST[engine].items()]
    if root_password:
        users[-1] = _with_password(users[-1], root_password)
    return users


def default_host(engine: Engine) -> str:
    """Only MySQL tells users apart by where they come from; there, silence means anywhere."""
    return "%" if engine is Engine.MYSQL else ""


def list_users(sql: CloudSql, call: Call) -> Tree:
    """`GET …/users`."""
    instance = opened(sql, call)
    items = [_view(user) for user in instance.users]
    return {"items": items, "kind": "sql#usersList"} if items else {"kind": "sql#usersList"}


def get_user(sql: CloudSql, call: Call) -> Tree:
    """`GET …/users/{name}?host=`."""
    instance = opened(sql, call)
    return _view(find_user(instance, call.part("name"), _host(instance, call)))


def insert_user(sql: CloudSql, call: Call) -> Tree:
    """`POST …/users`."""
    instance = opened(sql, call)
    body = inside(call, read(USER, call.body))
    engine = engine_of(instance.resource["databaseVersion"])
    asked = str(body.get("name", ""))
    name = _stored_name(asked, str(body.get("type", "BUILT_IN")), engine)
    if not name:
        raise refusals.invalid("Missing parameter: name")
    host = str(body.get("host", default_host(engine)))
    if host and engine is not Engine.MYSQL:
        raise refusals.invalid(f"A user of {engine} has no host ({host})")
    if (name, host) in [(user.name, user.host) for user in instance.users]:
        raise refusals.already_exists(f"User {name}@{host}")
    place = {"instance": call.part("instance"), "project": call.part("project")}
    more = _details(body)
    if body.get("type", "BUILT_IN") != "BUILT_IN":
        more["type"] = body["type"]
    user = _user(place, name, host, more)
    if name != asked:
        user = replace(user, resource={**user.resource, "iamEmail": asked})
    return _write(sql, call, "CREATE_USER", _with_password(user, body["password"]) if "password" in body else user)


def update_user(sql: CloudSql, call: Call) -> Tree:
    """`PUT …/users?name=&host=`: what the body leaves out stays; a policy in it is the whole policy."""
    instance = opened(sql, call)
    body = inside(call, read(USER, call.body))
    user = find_user(instance, _asked_name(call), _host(instance, call))
    for key in ("name", "host"):
        if body.get(key, getattr(user, key)) != getattr(user, key):
            raise refusals.invalid(f"The {key} of a user cannot change from {getattr(user, key)} to {body[key]}")
    if body.get("type", user.resource.get("type", "BUILT_IN")) != user.resource.get("type", "BUILT_IN"):
        raise refusals.invalid("The type of a user is fixed when the user is created")
    changed = replace(user, resource={**user.resource, **_details(body)})
    return _write(
        sql, call, "UPDATE_USER", _with_password(changed, body["password"]) if "password" in body else changed
    )


def delete_user(sql: CloudSql, call: Call) -> Tree:
    """`DELETE …/users?name=&host=`."""
    instance = opened(sql, call)
    user = find_user(instance, _asked_name(call), _host(instance, call))
    refuse_while_busy(sql.state, f"{call.part('project')}/{call.part('instance')}")
    effect = RemoveUser(user.name, user.host)
    return start(sql, Wanted("DELETE_USER", call.part("project"), call.part("instance"), effect), call.now)


def find_user(instance: Instance, name: str, host: str) -> User:
    """The user of that name and host; a 404 when there is none."""
    for user in instance.users:
        if (user.name, user.host) == (name, host):
            return user
    raise refusals.not_found()


def password_matches(user: User, password: str) -> bool:
    """Whether the user could log in with `password`."""
    return is_password(user.salt, user.password_hash, password)


def _write(sql: CloudSql, call: Call, type_: str, user: User) -> Tree:
    refuse_while_busy(sql.state, f"{call.part('project')}/{call.part('instance')}")
    return start(sql, Wanted(type_, call.part("project"), call.part("instance"), PutUser(user)), call.now)


def _details(body: Tree) -> Tree:
    return {name: value for name, value in body.items() if name in _DETAILS}


def _user(place: Tree, name: str, host: str, more: Tree) -> User:
    resource = {"host": host, "iamStatus": "IAM_STATUS_UNSPECIFIED", "kind": "sql#user", "name": name, **place}
    return User(name, host, {**resource, **kept(USER, more), "passwordPolicy": more.get("passwordPolicy", {})})


def _with_password(user: User, password: str) -> User:
    salt, password_hash = salt_and_hash(password)
    return replace(user, salt=salt, password_hash=password_hash)


def _view(user: User) -> Tree:
    policy = {**user.resource["passwordPolicy"], "status": {}}
    return {**user.resource, "etag": digest(user.resource), "passwordPolicy": policy}


def _stored_name(name: str, type_: str, engine: Engine) -> str:
    # MySQL knows a person by the part before the @ only.
    return name.partition("@")[0] if engine is Engine.MYSQL and type_ != "BUILT_IN" else name


def _asked_name(call: Call) -> str:
    if "name" not in call.query:
        raise refusals.missing_parameter("name")
    return call.query["name"]


def _host(instance: Instance, call: Call) -> str:
    return call.query.get("host", default_host(engine_of(instance.resource["databaseVersion"])))
