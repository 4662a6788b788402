"""Where a user is: the project, the instance, the name, and the host that it comes from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from setpoint.clients.google import Call, Service
from setpoint.engine.kind import Location, Resolved
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.kinds.cloud_sql import INSTANCE, parent_instance
from setpoint.kinds.config_connector import resource_id
from setpoint.kinds.gcp.sql_user.spec import SqlUserSpec
from setpoint.kinds.typed_spec import read_spec

# MySQL's word for every host, and what a user has of whom nobody says one. The other engines have no hosts.
ANYWHERE: Final = "%"
# Name and host are quoted as in an address: they may hold anything.
_LOCATION: Final = re.compile(r"projects/([^/]+)/instances/([^/]+)/users/([^/?]+)(?:\?host=(.+))?")


@dataclass(frozen=True, slots=True)
class Place:
    """A location, taken apart. No host: from anywhere, or the engine has no hosts."""

    project: str
    instance: str
    name: str
    host: str = ""

    def users(self, query: Mapping[str, str] | None = None) -> Call:
        """The address of the instance's users."""
        return Call(Service.SQL, ("projects", self.project, "instances", self.instance, "users"), query or {})


def place_of(location: Location) -> Place:
    """The place on record."""
    found = _LOCATION.fullmatch(location)
    assert found is not None, location
    return Place(found[1], found[2], unquote(found[3]), unquote(found[4] or ""))


def location_of(resource: Resource, resolved: Resolved) -> Location:
    """The place to put on record. A host that means anywhere is left out: whether it is said makes no difference."""
    user = f"{instance_of(resource, resolved)}/users/{quote(resource_id(resource), safe='')}"
    host = _host(resource, resolved)
    return Location(user if host in ("", ANYWHERE) else f"{user}?host={quote(host, safe='')}")


def instance_of(resource: Resource, resolved: Resolved) -> str:
    """`projects/p/instances/i`."""
    return parent_instance(read_spec(resource, SqlUserSpec).instanceRef, resource, resolved)


def _host(resource: Resource, resolved: Resolved) -> str:
    """The host that the author names; ManifestInvalid where the instance is known to have none."""
    host = read_spec(resource, SqlUserSpec).host or ""
    instance = resolved.resources.get(INSTANCE)
    version = None if instance is None else instance.spec.get("databaseVersion")
    if host and isinstance(version, str) and not version.startswith("MYSQL"):
        raise ManifestInvalid(
            f"{resource.ref}: spec.host is {host!r}, and only users of MySQL have a host: "
            f"leave it out, for the instance is {version}"
        )
    return host
