"""The spec of a SQLUser, field by field: what each is, its default, who may change it."""

from typing import Annotated, Final, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.overlay import overlay_typed
from setpoint.core.policy import FieldPolicy
from setpoint.core.shape import Default, Mark
from setpoint.core.values import Missing
from setpoint.kinds.config_connector import Ref

GROUP: Final = "sql.cnrm.cloud.google.com"
PASSWORD: Final = "spec.password"
BUILT_IN: Final = "BUILT_IN"
# A password that does not expire.
NEVER: Final = "0s"

T = TypeVar("T")
# A value, an explicit null, or nothing.
Maybe: TypeAlias = T | None | UnsetType


class _Part(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A part of the spec: nothing in it that the type does not name."""


class SecretKeyRef(_Part, frozen=True):
    """A key of a Secret in the resource's own namespace."""

    name: str
    key: str


class ValueFrom(_Part, frozen=True):
    """Where the password is."""

    secretKeyRef: SecretKeyRef


class Password(_Part, frozen=True):
    """The password itself, or where it is."""

    value: Maybe[str] = UNSET
    valueFrom: Maybe[ValueFrom] = UNSET

    def __repr__(self) -> str:
        return "Password(…)"


class PasswordStatus(_Part, frozen=True):
    """What the service says of a password: not the author's to decide."""

    locked: Maybe[bool] = UNSET
    passwordExpirationTime: Maybe[str] = UNSET


class PasswordPolicy(_Part, frozen=True):
    """When a password is locked, and when it expires."""

    allowedFailedAttempts: Annotated[Maybe[int], Default(0)] = UNSET
    enableFailedAttemptsCheck: Annotated[Maybe[bool], Default(False)] = UNSET
    enablePasswordVerification: Annotated[Maybe[bool], Default(False)] = UNSET
    passwordExpirationDuration: Annotated[Maybe[str], Default(NEVER)] = UNSET
    status: Annotated[Maybe[list[PasswordStatus]], Mark.OUTPUT_ONLY] = UNSET


UserType: TypeAlias = Literal["BUILT_IN", "CLOUD_IAM_USER", "CLOUD_IAM_SERVICE_ACCOUNT"]


class SqlUserSpec(_Part, frozen=True):
    """The spec."""

    instanceRef: Annotated[Ref, Mark.IMMUTABLE]
    host: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    password: Annotated[Maybe[Password], Mark.WRITE_ONLY] = UNSET
    passwordPolicy: Maybe[PasswordPolicy] = UNSET
    resourceID: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    type: Annotated[Maybe[UserType], Mark.IMMUTABLE, Default(BUILT_IN)] = UNSET


class SqlUserTree(Struct, frozen=True):
    """What is compared. Instance, host and name are the location: a change of those is refused before any look."""

    spec: SqlUserSpec


def effective_desired_sql_user(spec: SqlUserSpec, live: SqlUserSpec | Missing, policy: FieldPolicy) -> SqlUserSpec:
    """What the user should be: the spec over the live object in the spec's terms; paths start with `spec`."""
    before = live if isinstance(live, Missing) else SqlUserTree(live)
    return overlay_typed(SqlUserTree(spec), before, policy).spec
