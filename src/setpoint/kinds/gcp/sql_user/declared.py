"""What the author says of a user, checked and in the terms in which it is compared."""

import re
from typing import Final

import msgspec
from msgspec import UNSET

from setpoint.core.values import Json
from setpoint.engine.kind import Need, Resolved, SecretKey
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.kinds.cloud_sql import INSTANCE, secret_need
from setpoint.kinds.config_connector import Target, reference_at
from setpoint.kinds.gcp.sql_user.live import LivePolicy
from setpoint.kinds.gcp.sql_user.spec import BUILT_IN, GROUP, PASSWORD, Password, PasswordPolicy, SqlUserSpec
from setpoint.kinds.typed_spec import read_spec

_SECONDS: Final = re.compile(r"([0-9]+)(?:\.([0-9]{1,9}))?s")


def checked_spec(resource: Resource) -> SqlUserSpec:
    """The spec; ManifestInvalid for one that no user can have."""
    spec = read_spec(resource, SqlUserSpec)
    if spec.password:
        _check_password(spec.password, spec, resource)
    if spec.passwordPolicy:
        _check_policy(spec.passwordPolicy, resource)
    return spec


def user_needs(resource: Resource) -> tuple[Need, ...]:
    """The instance, when it is named as a resource; and the Secret with the password."""
    spec = checked_spec(resource)
    instance = reference_at(INSTANCE, spec.instanceRef, resource, Target(GROUP, "SQLInstance"))
    secret = _secret(spec.password, resource) if spec.password else None
    return tuple(need for need in (instance, secret) if need is not None)


def declared_user(resource: Resource, resolved: Resolved) -> dict[str, Json]:
    """What is said about the user itself, the password from wherever it is."""
    spec = checked_spec(resource)
    said: dict[str, Json] = {}
    if spec.type is not UNSET:
        said["type"] = spec.type
    password = resolved.secrets.get(PASSWORD, spec.password.value if spec.password else None)
    if isinstance(password, str):
        said["password"] = {"value": password}
    if spec.passwordPolicy is not UNSET:
        said["passwordPolicy"] = None if spec.passwordPolicy is None else policy_terms(spec.passwordPolicy)
    return said


def policy_terms(policy: PasswordPolicy | LivePolicy) -> dict[str, Json]:
    """A policy without what only the service says, its duration in one spelling."""
    terms: dict[str, Json] = msgspec.to_builtins(policy)
    terms.pop("status", None)
    duration = terms.get("passwordExpirationDuration")
    return {**terms, "passwordExpirationDuration": _one_spelling(duration)} if isinstance(duration, str) else terms


def _secret(password: Password, resource: Resource) -> SecretKey | None:
    where = password.valueFrom.secretKeyRef if password.valueFrom else None
    return secret_need(PASSWORD, password.value, where, resource)


def _check_password(password: Password, spec: SqlUserSpec, resource: Resource) -> None:
    _secret(password, resource)
    if (spec.type or BUILT_IN) != BUILT_IN:
        raise ManifestInvalid(f"{resource.ref}: spec.password is not for a user of type {spec.type}: leave it out")


def _check_policy(policy: PasswordPolicy, resource: Resource) -> None:
    duration = policy.passwordExpirationDuration
    if isinstance(duration, str) and _SECONDS.fullmatch(duration) is None:
        raise ManifestInvalid(
            f"{resource.ref}: spec.passwordPolicy.passwordExpirationDuration is {duration!r}: "
            "write it in seconds, as 2592000s"
        )


def _one_spelling(duration: str) -> str:
    """A duration without zeros that say nothing; what is no duration stays as it is."""
    found = _SECONDS.fullmatch(duration)
    if found is None:
        return duration
    part = (found[2] or "").rstrip("0")
    return f"{int(found[1])}.{part}s" if part else f"{int(found[1])}s"
