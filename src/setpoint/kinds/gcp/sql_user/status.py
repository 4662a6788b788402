"""What the status shows of a user, field by field."""

from msgspec import UNSET, Struct, UnsetType


class ServerUserDetails(Struct, frozen=True):
    disabled: bool | UnsetType = UNSET
    """Whether it cannot log in."""
    serverRoles: list[str] | UnsetType = UNSET
    """Its roles on the server."""


class SqlUserStatus(Struct, frozen=True):
    """What comes with a live user and nobody asks for."""

    sqlServerUserDetails: list[ServerUserDetails] | UnsetType = UNSET
    """Of a user of SQL Server: whether it is disabled, and its roles."""
