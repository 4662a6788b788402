"""Requests for a SQLUser: the query that selects the user, and the bodies of insert and update."""

from collections.abc import Mapping
from typing import Final

from setpoint.clients.google.client import GoogleClient
from setpoint.core.plan import PlannedWrite
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.shared.cloud_sql import is_mysql
from setpoint.kinds.gcp.sql_user.declared import UNSET_POLICY, policy_not_default
from setpoint.kinds.gcp.sql_user.live import ANY_HOST, SqlUser, SqlUserLocation, parse_user_location
from setpoint.kinds.gcp.sql_user.spec import NEVER_EXPIRES


async def user_query(
    parsed: SqlUserLocation, resource: Resource, live: SqlUser, google: GoogleClient
) -> Mapping[str, str]:
    """The query that selects the user: its name in the service, and the host of its location or of the live user."""
    host = parsed.host or live.host
    if not host and resource.spec.get("host") == ANY_HOST and await is_mysql(parsed.project, parsed.instance, google):
        # The list omits this host. On an engine without hosts, the author's wildcard is ignored.
        host = ANY_HOST
    return {"host": host, "name": live.name} if host else {"name": live.name}


_PASSWORD: Final = Path(("spec", "password"))
_POLICY: Final = Path(("spec", "passwordPolicy"))


def insert_body(intent: Intent, wanted: JsonObject) -> dict[str, Json]:
    """The body of an insert: `wanted` as a whole, with the names that select the user."""
    parsed, user = parse_user_location(intent.location), _spec(wanted)
    host = intent.resource.spec.get("host")
    body: dict[str, Json] = {"host": host} if host else {}
    body |= {"instance": parsed.instance, "name": parsed.name, **_password(user)}
    return {**body, **{name: user[name] for name in ("passwordPolicy", "type") if name in user}}


def update_body(wanted: JsonObject, write: PlannedWrite) -> dict[str, Json]:
    """The members that `write` changes: the password only if it changed, the policy as a whole or not at all."""
    user, paths = _spec(wanted), [change.path for change in write.changes]
    members = _password(user) if _PASSWORD in paths else {}
    policy = policy_not_default(user.get("passwordPolicy"))
    if any(_POLICY.covers(path) for path in paths):
        # The service replaces the whole policy. Only the duration has no value that means "not set".
        unset = {name: value for name, value in UNSET_POLICY.items() if value != NEVER_EXPIRES}
        members["passwordPolicy"] = {**unset, **policy}
    elif policy and members:
        members["passwordPolicy"] = policy
    return members


def _spec(wanted: JsonObject) -> Mapping[str, Json]:
    spec = wanted["spec"]
    assert isinstance(spec, Mapping)
    return spec


def _password(user: Mapping[str, Json]) -> dict[str, Json]:
    """The password member; empty when the password is not managed."""
    password = user.get("password")
    text = password.get("value") if isinstance(password, Mapping) else None
    return {"password": text} if isinstance(text, str) else {}
