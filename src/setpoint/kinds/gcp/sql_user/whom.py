"""Whom a write is about."""

from collections.abc import Mapping

from setpoint.clients.google import GoogleClient
from setpoint.engine.resource import Resource
from setpoint.kinds.cloud_sql import is_mysql
from setpoint.kinds.gcp.sql_user.live import SqlUser
from setpoint.kinds.gcp.sql_user.place import ANYWHERE, Place


async def asked_for(place: Place, resource: Resource, live: SqlUser, google: GoogleClient) -> Mapping[str, str]:
    """The user by the name that the service has for it, from the host on record, or else as the service says."""
    host = place.host or live.host
    if not host and resource.spec.get("host") == ANYWHERE and await is_mysql(place.project, place.instance, google):
        # The list leaves the host out. Where there are no hosts, it is the author who says too much.
        host = ANYWHERE
    return {"host": host, "name": live.name} if host else {"name": live.name}
