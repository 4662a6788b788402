"""The spec of a SQLUser, field by field: what each is, its default, who may change it."""

from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Struct

from setpoint.core.numbers import Int64
from setpoint.core.overlay import overlay_typed
from setpoint.core.policy import FieldPolicy
from setpoint.core.shape import Check, Default, Mark
from setpoint.core.values import Missing
from setpoint.kinds.config_connector import NAMED, SECRET, Ref
from setpoint.kinds.spec_parts import Maybe, Part, ValueFrom

GROUP: Final = "sql.cnrm.cloud.google.com"
PASSWORD: Final = "spec.password"
BUILT_IN: Final = "BUILT_IN"
# A password that does not expire.
NEVER: Final = "0s"


class Password(Part, frozen=True):
    """The password itself, or where it is."""

    value: Maybe[str] = UNSET
    """The password itself, for everybody to see who may see the resource."""
    valueFrom: Maybe[ValueFrom] = UNSET
    """Where the password is kept."""

    __checks__: ClassVar = (SECRET,)

    def __repr__(self) -> str:
        return "Password(…)"


class PasswordStatus(Part, frozen=True):
    """What the service says of a password: not the author's to decide."""

    locked: Maybe[bool] = UNSET
    """Whether the user is locked out."""
    passwordExpirationTime: Maybe[str] = UNSET
    """When the password expires."""


class PasswordPolicy(Part, frozen=True):
    """When a password is locked, and when it expires."""

    allowedFailedAttempts: Annotated[Maybe[Int64], Default(0)] = UNSET
    """After how many failed attempts the user is locked out."""
    enableFailedAttemptsCheck: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether failed attempts are counted."""
    enablePasswordVerification: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether it takes the old password to set a new one. MySQL only."""
    passwordExpirationDuration: Annotated[Maybe[str], Default(NEVER)] = UNSET
    """How long a password is good, in seconds: `2592000s`; `0s` is for ever."""
    status: Annotated[Maybe[list[PasswordStatus]], Mark.OUTPUT_ONLY] = UNSET
    """What the service says of the password."""

    __checks__: ClassVar = (
        Check(
            "!has(self.passwordExpirationDuration)"
            " || self.passwordExpirationDuration.matches('^[0-9]+([.][0-9]{1,9})?s$')",
            "write it in seconds, as 2592000s",
            "passwordExpirationDuration",
        ),
    )


UserType: TypeAlias = Literal["BUILT_IN", "CLOUD_IAM_USER", "CLOUD_IAM_SERVICE_ACCOUNT"]


class SqlUserSpec(Part, frozen=True):
    """The spec."""

    instanceRef: Annotated[Ref, Mark.IMMUTABLE]
    """The instance that the user belongs to."""
    host: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """Where the user may come from. MySQL only."""
    password: Annotated[Maybe[Password], Mark.WRITE_ONLY] = UNSET
    """The password; only a user of type BUILT_IN has one."""
    passwordPolicy: Maybe[PasswordPolicy] = UNSET
    """When the user is locked out, and when the password expires."""
    resourceID: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """The name of the user in the service; the resource's own when left out."""
    type: Annotated[Maybe[UserType], Mark.IMMUTABLE, Default(BUILT_IN)] = UNSET
    """How the user proves who it is."""

    __checks__: ClassVar = (
        NAMED,
        Check(
            "!has(self.password) || !has(self.type) || self.type == 'BUILT_IN'",
            "is for a user of type BUILT_IN only: leave it out",
            "password",
        ),
    )


class SqlUserTree(Struct, frozen=True):
    """What is compared. Instance, host and name are the location: a change of those is refused before any look."""

    spec: SqlUserSpec


def effective_desired_sql_user(spec: SqlUserSpec, live: SqlUserSpec | Missing, policy: FieldPolicy) -> SqlUserSpec:
    """What the user should be: the spec over the live object in the spec's terms; paths start with `spec`."""
    before = live if isinstance(live, Missing) else SqlUserTree(live)
    return overlay_typed(SqlUserTree(spec), before, policy).spec
