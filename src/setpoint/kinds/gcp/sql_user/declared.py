"""The author's SQLUser: validated, normalized, and laid over the live user."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec
from msgspec import UNSET

from setpoint.core.overlay import EffectiveState, effective_state
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.problems import Problems
from setpoint.engine.kind import Dependency, ResolvedReferences, SecretKeyReference
from setpoint.engine.resource import Resource
from setpoint.kind.spec_references import secret_dependency
from setpoint.kind.typed_spec import decode_spec, field_invalid
from setpoint.kinds.gcp.shared.cloud_sql import INSTANCE_REF
from setpoint.kinds.gcp.shared.config_connector import ReferenceTarget, reference_at
from setpoint.kinds.gcp.sql_user.live import LiveUserPasswordPolicy
from setpoint.kinds.gcp.sql_user.spec import (
    BUILT_IN,
    EXPIRATION,
    GROUP,
    NEVER_EXPIRES,
    PASSWORD,
    SqlUserSpec,
    SqlUserTree,
    UserPassword,
    UserPasswordPolicy,
)

_SECONDS: Final = re.compile(r"([0-9]+)(?:\.([0-9]{1,9}))?s")


def checked_spec(resource: Resource) -> SqlUserSpec:
    """The decoded spec; ManifestInvalid for one that is invalid whatever the live state."""
    spec = decode_spec(resource, SqlUserSpec)
    problems = Problems()
    if spec.password:
        problems.collect(_check_password, spec.password, spec, resource)
    if spec.passwordPolicy:
        problems.collect(_check_policy, spec.passwordPolicy, resource)
    problems.require_none()
    return spec


def user_dependencies(resource: Resource) -> tuple[Dependency, ...]:
    """The instance, if it is referred to as a resource, and the Secret with the password."""
    spec = checked_spec(resource)
    instance = reference_at(INSTANCE_REF, spec.instanceRef, resource, ReferenceTarget(GROUP, "SQLInstance"))
    secret = _secret(spec.password, resource) if spec.password else None
    return tuple(dependency for dependency in (instance, secret) if dependency is not None)


def declared_user(resource: Resource, resolved: ResolvedReferences) -> dict[str, Json]:
    """The declared user, with its password from the manifest or the Secret."""
    spec = checked_spec(resource)
    declared: dict[str, Json] = {}
    if spec.type is not UNSET:
        declared["type"] = spec.type
    password = resolved.secrets.get(PASSWORD, spec.password.value if spec.password else None)
    if isinstance(password, str):
        declared["password"] = {"value": password}
    if spec.passwordPolicy is not UNSET:
        declared["passwordPolicy"] = None if spec.passwordPolicy is None else normalized_policy(spec.passwordPolicy)
    return declared


def normalized_policy(policy: UserPasswordPolicy | LiveUserPasswordPolicy) -> dict[str, Json]:
    """A policy without its output-only fields, and with its duration normalized."""
    terms: dict[str, Json] = msgspec.to_builtins(policy)
    terms.pop("status", None)
    duration = terms.get("passwordExpirationDuration")
    return (
        {**terms, "passwordExpirationDuration": _normalized_duration(duration)} if isinstance(duration, str) else terms
    )


def _secret(password: UserPassword, resource: Resource) -> SecretKeyReference | None:
    where = password.valueFrom.secretKeyRef if password.valueFrom else None
    return secret_dependency(PASSWORD, password.value, where, resource)


def _check_password(password: UserPassword, spec: SqlUserSpec, resource: Resource) -> None:
    _secret(password, resource)
    if (spec.type or BUILT_IN) != BUILT_IN:
        raise field_invalid(resource, "spec.password", f" is not for a user of type {spec.type}: leave it out")


def _check_policy(policy: UserPasswordPolicy, resource: Resource) -> None:
    duration = policy.passwordExpirationDuration
    if isinstance(duration, str) and not EXPIRATION.allows(duration):
        problem = f" is {duration!r}: write {EXPIRATION.advice}"
        raise field_invalid(resource, "spec.passwordPolicy.passwordExpirationDuration", problem)


def _normalized_duration(duration: str) -> str:
    """A duration without insignificant zeros; a text that is no duration is returned unchanged."""
    found = _SECONDS.fullmatch(duration)
    if found is None:
        return duration
    part = (found[2] or "").rstrip("0")
    return f"{int(found[1])}.{part}s" if part else f"{int(found[1])}s"


# --- The effective desired state --------------------------------------------------------------------------------------

# A policy without terms.
UNSET_POLICY: Final[Mapping[str, Json]] = {
    "allowedFailedAttempts": 0,
    "enableFailedAttemptsCheck": False,
    "enablePasswordVerification": False,
    "passwordExpirationDuration": NEVER_EXPIRES,
}


def effective_user(spec: SqlUserTree, live: SqlUserTree | Missing, policy: FieldPolicy) -> EffectiveState[SqlUserTree]:
    """What the user should be after this step. A new user is sent without values that are defaults."""
    found = effective_state(spec, live, policy)
    if not isinstance(live, Missing):
        return found
    user = found.tree["spec"]
    assert isinstance(user, Mapping)
    created: dict[str, Json] = {"password": user["password"]} if "password" in user else {}
    if user.get("type", BUILT_IN) != BUILT_IN:
        created["type"] = user["type"]
    if terms := policy_not_default(user.get("passwordPolicy")):
        created["passwordPolicy"] = terms
    return replace(found, tree={"spec": created})


def policy_not_default(policy: Json) -> dict[str, Json]:
    """The terms of a policy that are not defaults."""
    terms = policy if isinstance(policy, Mapping) else {}
    return {name: terms[name] for name, unset in UNSET_POLICY.items() if not same(terms.get(name, unset), unset)}
