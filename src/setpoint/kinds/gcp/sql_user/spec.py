"""Spec and status of a SQLUser: type, default and mutability of each field."""

from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.schema.checks import AnyOf, Check, Given, Is, Not
from setpoint.core.schema.constraints import Between
from setpoint.core.schema.shape import Default, Mark
from setpoint.core.values.json_types import Int64
from setpoint.kind.spec_references import SECRET_CHECK
from setpoint.kind.typed_spec import Maybe, SpecStruct, ValueFrom
from setpoint.kinds.gcp.shared.cloud_sql import InstanceReference
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_NAME,
    GOOGLE_DURATION,
    RESOURCE_ID_CHECK,
)

GROUP: Final = "sql.cnrm.cloud.google.com"
PASSWORD: Final = "spec.password"
BUILT_IN: Final = "BUILT_IN"
# A password that does not expire.
NEVER_EXPIRES: Final = "0s"
EXPIRATION: Final = replace(GOOGLE_DURATION, or_empty=False)


class UserPassword(SpecStruct, frozen=True):
    """A password in the manifest, or in a Secret."""

    value: Maybe[str] = UNSET
    """The password in plain text, readable by every user who may read the resource."""
    valueFrom: Maybe[ValueFrom] = UNSET
    """Where the password is kept."""

    __checks__: ClassVar = (SECRET_CHECK,)

    def __repr__(self) -> str:
        return "Password(…)"


class UserPasswordStatus(SpecStruct, frozen=True):
    """What the service reports about a password: output only."""

    locked: Maybe[bool] = UNSET
    """Whether the user is locked out."""
    passwordExpirationTime: Maybe[str] = UNSET
    """When the password expires."""


class UserPasswordPolicy(SpecStruct, frozen=True):
    """Lockout and expiry of a password."""

    allowedFailedAttempts: Annotated[Maybe[Int64], Between(0), Default(0)] = UNSET
    """After how many failed attempts the user is locked out."""
    enableFailedAttemptsCheck: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether failed attempts are counted."""
    enablePasswordVerification: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the old password is required to set a new one. MySQL only."""
    passwordExpirationDuration: Annotated[Maybe[str], EXPIRATION, Default(NEVER_EXPIRES)] = UNSET
    """How long a password is valid, in seconds: `2592000s`; with `0s` it does not expire."""
    status: Annotated[Maybe[list[UserPasswordStatus]], Mark.OUTPUT_ONLY] = UNSET
    """What the service reports about the password."""


UserType: TypeAlias = Literal["BUILT_IN", "CLOUD_IAM_USER", "CLOUD_IAM_SERVICE_ACCOUNT"]


class SqlUserSpec(SpecStruct, frozen=True):
    """The spec of a SQLUser."""

    instanceRef: Annotated[InstanceReference, Mark.IMMUTABLE]
    """The instance that the user belongs to."""
    host: Annotated[Maybe[str], ANY_NAME.constraint, Mark.IMMUTABLE] = UNSET
    """The host that the user may connect from. MySQL only."""
    password: Annotated[Maybe[UserPassword], Mark.WRITE_ONLY] = UNSET
    """The password; only a user of type BUILT_IN has one."""
    passwordPolicy: Maybe[UserPasswordPolicy] = UNSET
    """When the user is locked out, and when the password expires."""
    resourceID: Annotated[Maybe[str], ANY_NAME.constraint, Mark.IMMUTABLE] = UNSET
    """The name of the user in the service; the resource's own when left out."""
    type: Annotated[Maybe[UserType], Mark.IMMUTABLE, Default(BUILT_IN)] = UNSET
    """How the user authenticates."""

    __checks__: ClassVar = (
        RESOURCE_ID_CHECK,
        Check(
            AnyOf(Not(Given("password")), Not(Given("type")), Is("type", BUILT_IN)),
            "is for a user of type BUILT_IN only: leave it out",
            "password",
        ),
    )


class SqlUserTree(Struct, frozen=True):
    """The compared tree. Instance, host and name are the location: a change is refused before the live user is read."""

    spec: SqlUserSpec


class SqlServerUserDetails(Struct, frozen=True):
    disabled: bool | UnsetType = UNSET
    """Whether it cannot log in."""
    serverRoles: list[str] | UnsetType = UNSET
    """Its roles on the server."""


class SqlUserStatus(Struct, frozen=True):
    """The status: what the service reports beside the spec."""

    sqlServerUserDetails: list[SqlServerUserDetails] | UnsetType = UNSET
    """Of a user of SQL Server: whether it is disabled, and its roles."""
