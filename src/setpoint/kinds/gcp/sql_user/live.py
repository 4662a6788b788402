"""The live user. Users come as a list; nobody is ever told their passwords."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.clients.google import decoded
from setpoint.kinds.gcp.sql_user.place import ANYWHERE, Place
from setpoint.kinds.gcp.sql_user.spec import BUILT_IN


class LivePolicy(Struct, frozen=True):
    """The policy as the service reports it: what it leaves out is as if nobody had set it."""

    allowedFailedAttempts: int | UnsetType = UNSET
    enableFailedAttemptsCheck: bool | UnsetType = UNSET
    enablePasswordVerification: bool | UnsetType = UNSET
    passwordExpirationDuration: str | UnsetType = UNSET


class SqlUser(Struct, frozen=True):
    """A user, cut to what the kind models."""

    name: str
    host: str = ""
    type: str = BUILT_IN
    passwordPolicy: LivePolicy = LivePolicy()


class ServerDetails(Struct, frozen=True):
    """What only a user of SQL Server has."""

    disabled: bool = False
    serverRoles: list[str] = []


class Aside(Struct, frozen=True):
    """What comes with a user and is not compared."""

    sqlserverUserDetails: ServerDetails | None = None


class _Key(Struct, frozen=True):
    """What tells a user in a list from the others. One without a name is somebody, and never ours."""

    name: str = ""
    host: str = ""
    type: str = BUILT_IN
    iamEmail: str = ""


class _Users(Struct, frozen=True):
    """The list. Without its kind, an answer does not say who is there, and so not who is absent."""

    kind: Literal["sql#usersList"]
    items: list[msgspec.Raw] = []


_list: Final = msgspec.json.Decoder(_Users)
_key: Final = msgspec.json.Decoder(_Key)
_user: Final = msgspec.json.Decoder(SqlUser)
_aside: Final = msgspec.json.Decoder(Aside)


def find_user(body: bytes, place: Place) -> bytes | None:
    """The user that is meant, as it came in the list; None when nobody in it is."""
    what = f"the users of {place.instance}"
    listed = [bytes(one) for one in decoded(_list, body, what).items]
    keys = [decoded(_key, one, what) for one in listed]
    found = _index(keys, place)
    return None if found is None else listed[found]


def read_user(body: bytes, place: Place) -> tuple[SqlUser, Aside]:
    """The user in the bytes, and what comes with it."""
    what = f"the user {place.name}"
    return decoded(_user, body, what), decoded(_aside, body, what)


def _index(keys: Sequence[_Key], place: Place) -> int | None:
    """Where the user is in the list; one whose host is not told counts if there is none from that very host."""
    for is_meant in (_is_named, _is_principal):
        for host in (place.host or ANYWHERE, ""):
            for index, key in enumerate(keys):
                if key.host == host and is_meant(key, place.name):
                    return index
    return None


def _is_named(key: _Key, name: str) -> bool:
    return key.name == name


def _is_principal(key: _Key, name: str) -> bool:
    """Whether this is somebody whom MySQL calls by the part before the @ only."""
    if not key.type.startswith("CLOUD_IAM_"):
        return False
    return key.iamEmail == name if key.iamEmail else key.name == name.partition("@")[0]
