"""The live user: its location, and how it is found in the list of an instance's users. Passwords are never returned."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal
from urllib.parse import quote, unquote

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.response_bodies import decode_response
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_limits import MAX_LIST_VALUES
from setpoint.engine.kind import Location, ResolvedReferences, match_location
from setpoint.engine.resource import Resource
from setpoint.kind.typed_spec import decode_spec, field_invalid
from setpoint.kinds.gcp.shared.cloud_sql import INSTANCE_REF, ParentInstance, parent_instance
from setpoint.kinds.gcp.shared.config_connector import ANY_NAME, TenantProjects, resource_id
from setpoint.kinds.gcp.sql_user.spec import BUILT_IN, SqlUserSpec

# MySQL's wildcard for every host, and its default. Other engines have no hosts.
ANY_HOST: Final = "%"
# Name and host are URL-quoted: they may contain any character.
_LOCATION: Final = re.compile(r"projects/([^/]+)/instances/([^/]+)/users/([^/?]+)(?:\?host=(.+))?")


@dataclass(frozen=True, slots=True)
class SqlUserLocation:
    """A parsed location. An empty host means any host, or an engine without hosts."""

    project: str
    instance: str
    name: str
    host: str = ""

    def users(self, query: Mapping[str, str] | None = None) -> GoogleCall:
        """The URL of the instance's users."""
        return GoogleCall(
            GoogleService.SQL, ("projects", self.project, "instances", self.instance, "users"), query or {}
        )


def parse_user_location(location: Location) -> SqlUserLocation:
    """The parsed location."""
    found = match_location(_LOCATION, location)
    return SqlUserLocation(found[1], found[2], unquote(found[3]), unquote(found[4] or ""))


def user_location(resource: Resource, resolved: ResolvedReferences, projects: TenantProjects) -> Location:
    """The location of a user. A host that means any host is left out: written or not, it is the same user."""
    instance = instance_of(resource, resolved, projects).path
    return _location_at(instance, resource_id(resource), _host(resource, resolved))


def instance_of(resource: Resource, resolved: ResolvedReferences, projects: TenantProjects) -> ParentInstance:
    """The instance that the user belongs to."""
    return parent_instance(decode_spec(resource, SqlUserSpec).instanceRef, resource, resolved, projects)


def _host(resource: Resource, resolved: ResolvedReferences) -> str:
    """The declared host; ManifestInvalid where the instance is known to run an engine without hosts."""
    host = decode_spec(resource, SqlUserSpec).host or ""
    if host and not ANY_NAME.allows(host):
        raise field_invalid(resource, "spec.host", f" is {host!r}: write a host name, an address, or '%'")
    instance = resolved.resources.get(INSTANCE_REF)
    version = None if instance is None else instance.spec.get("databaseVersion")
    if host and isinstance(version, str) and not version.startswith("MYSQL"):
        problem = f" is {host!r}, and only users of MySQL have a host: leave it out, for the instance is {version}"
        raise field_invalid(resource, "spec.host", problem)
    return host


class LiveUserPasswordPolicy(Struct, frozen=True):
    """The policy as the service reports it: what it leaves out is not set."""

    allowedFailedAttempts: int | UnsetType = UNSET
    enableFailedAttemptsCheck: bool | UnsetType = UNSET
    enablePasswordVerification: bool | UnsetType = UNSET
    passwordExpirationDuration: str | UnsetType = UNSET


class SqlUser(Struct, frozen=True):
    """The live user, reduced to the fields that the kind models."""

    name: str
    host: str = ""
    type: str = BUILT_IN
    passwordPolicy: LiveUserPasswordPolicy = LiveUserPasswordPolicy()


class LiveSqlServerDetails(Struct, frozen=True):
    """Details of a SQL Server user."""

    disabled: bool = False
    serverRoles: list[str] = []


class SqlUserOutputs(Struct, frozen=True):
    """Output-only fields of a user: not compared."""

    sqlserverUserDetails: LiveSqlServerDetails | None = None


class _Key(Struct, frozen=True):
    """The identity of a user in the list. An entry without a name matches no user."""

    name: str = ""
    host: str = ""
    type: str = BUILT_IN
    iamEmail: str = ""


class _Users(Struct, frozen=True):
    """The list. A response without its kind proves neither that a user exists nor that it is absent."""

    kind: Literal["sql#usersList"]
    items: list[msgspec.Raw] = []


_list: Final = msgspec.json.Decoder(_Users)
_key: Final = msgspec.json.Decoder(_Key)
_user: Final = msgspec.json.Decoder(SqlUser)
_outputs: Final = msgspec.json.Decoder(SqlUserOutputs)


def find_user(body: bytes, location: SqlUserLocation) -> bytes | None:
    """The user at `location` as the list has it; None when it is not listed."""
    what = f"the users of {location.instance}"
    listed = [bytes(one) for one in decode_response(_list, body, what, MAX_LIST_VALUES).items]
    keys = [decode_response(_key, one, what) for one in listed]
    found = _index(keys, location)
    return None if found is None else listed[found]


def listed_users(body: bytes, instance: SqlUserLocation) -> Sequence[tuple[Location, bytes]]:
    """The users in the list of an instance, each with its location; an entry without a name is none."""
    what, path = f"the users of {instance.instance}", f"projects/{instance.project}/instances/{instance.instance}"
    listed = [bytes(one) for one in decode_response(_list, body, what, MAX_LIST_VALUES).items]
    keys = [decode_response(_key, one, what) for one in listed]
    named = ((_key_name(key), key.host, one) for key, one in zip(keys, listed, strict=True) if key.name)
    return [(_location_at(path, name, host), one) for name, host, one in named]


def _key_name(key: _Key) -> str:
    return key.iamEmail if key.iamEmail and key.type.startswith("CLOUD_IAM_") else key.name


def _location_at(instance: str, name: str, host: str) -> Location:
    user = f"{instance}/users/{quote(name, safe='')}"
    return Location(user if host in ("", ANY_HOST) else f"{user}?host={quote(host, safe='')}")


def read_user(body: bytes, location: SqlUserLocation) -> tuple[SqlUser, SqlUserOutputs]:
    """The decoded user, and its output-only fields."""
    what = f"the user {location.name}"
    return decode_response(_user, body, what), decode_response(_outputs, body, what)


def _index(keys: Sequence[_Key], location: SqlUserLocation) -> int | None:
    """The index of the user; an entry without a host matches when there is none with exactly that host."""
    for is_meant in (_is_named, _is_principal):
        for host in (location.host or ANY_HOST, ""):
            for index, key in enumerate(keys):
                if key.host == host and is_meant(key, location.name):
                    return index
    return None


def _is_named(key: _Key, name: str) -> bool:
    return key.name == name


def _is_principal(key: _Key, name: str) -> bool:
    """Whether `name` is the e-mail address of an IAM user, which MySQL lists by the part before the @."""
    if not key.type.startswith("CLOUD_IAM_"):
        return False
    return key.iamEmail == name if key.iamEmail else key.name == name.partition("@")[0]
