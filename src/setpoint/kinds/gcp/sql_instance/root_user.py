"""The default user of a new instance: removed from MySQL, and given the root password on every engine."""

from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.google.client import GoogleClient
from setpoint.clients.google.operations import SqlOperation, sql_operation
from setpoint.clients.response_bodies import decode_response
from setpoint.engine.kind import Location
from setpoint.errors import RemoteConflict
from setpoint.kinds.gcp.sql_instance.requests import project_and_instance, users_call

ROOT: Final = "root"
# By engine.
_DEFAULT_USER: Final = {"MYSQL": ROOT, "POSTGRES": "postgres", "SQLSERVER": "sqlserver"}


class _User(Struct, frozen=True):
    name: str = ""
    host: str = ""


class _Users(Struct, frozen=True):
    items: list[_User] = []


_decoder: Final = msgspec.json.Decoder(_Users)


async def remove_root_user(location: Location, google: GoogleClient) -> SqlOperation | None:
    """Deletes the users named root one by one; the operation to wait for before the next call."""
    body = await google.get(users_call(location))
    users = [] if body is None else decode_response(_decoder, body, f"{location}/users").items
    for user in users:
        if user.name == ROOT:
            answer = await google.delete(users_call(location, {"host": user.host, "name": ROOT}))
            operation = None if answer is None else sql_operation(answer)
            if operation is not None and not operation.is_done:
                return operation
    return None


async def set_root_password(
    location: Location, database_version: str, password: str, google: GoogleClient
) -> SqlOperation:
    """Sets the password of the engine's default user, which is created again if it was deleted."""
    engine = database_version.partition("_")[0]
    name = _DEFAULT_USER.get(engine, ROOT)
    who = {"host": "%", "name": name} if engine == "MYSQL" else {"name": name}
    _, instance = project_and_instance(location)
    body = {"instance": instance, **who, "password": password}
    try:
        return sql_operation(await google.put(users_call(location, who), body))
    except RemoteConflict:
        # The user does not exist: create it with this password.
        return sql_operation(await google.post(users_call(location), body))
