"""The effective desired state of a user, typed: spec over live, neither of them changed."""

from typing import Any

import msgspec
import pytest

from setpoint.core.schema.policy import IGNORE, PRUNE, FieldPolicy
from setpoint.core.schema.shape import shape_of
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import MISSING, Missing
from setpoint.kinds.gcp.sql_user import SqlUserSpec, SqlUserTree
from setpoint.kinds.gcp.sql_user.declared import effective_user

VERIFY = "enablePasswordVerification"
DEFAULTS = {
    "allowedFailedAttempts": 0,
    "enableFailedAttemptsCheck": False,
    "enablePasswordVerification": False,
    "passwordExpirationDuration": "0s",
}


def desired_user(declared: SqlUserSpec, live: SqlUserSpec | Missing, rules: FieldPolicy) -> SqlUserSpec:
    before = live if isinstance(live, Missing) else SqlUserTree(live)
    return effective_user(SqlUserTree(declared), before, rules).state.spec


def spec(**fields: Any) -> SqlUserSpec:
    return msgspec.convert({"instanceRef": {"external": "main"}, **fields}, SqlUserSpec)


def policy(**fields: Any) -> SqlUserSpec:
    return spec(passwordPolicy=fields)


def annotated(**annotations: str) -> FieldPolicy:
    found = {f"cnrm.cloud.google.com/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return FieldPolicy.parse(found, shape_of(SqlUserTree))


LISTED = annotated(default_to_gcp_fields=f"spec.passwordPolicy.{VERIFY}")
UNMANAGED = annotated(unmanaged=f"spec.passwordPolicy.{VERIFY},spec.password")


@pytest.mark.parametrize(
    ("declared", "live", "rules", "field", "wanted"),
    [
        # The policy, field by field.
        (spec(), policy(allowedFailedAttempts=5), PRUNE, "passwordPolicy", DEFAULTS),
        (spec(), policy(allowedFailedAttempts=5), IGNORE, "passwordPolicy", {"allowedFailedAttempts": 5}),
        (spec(passwordPolicy=None), policy(allowedFailedAttempts=5), IGNORE, "passwordPolicy", DEFAULTS),
        (policy(), policy(allowedFailedAttempts=5), PRUNE, "passwordPolicy", DEFAULTS),
        (
            policy(allowedFailedAttempts=3),
            policy(allowedFailedAttempts=5, passwordExpirationDuration="60s"),
            PRUNE,
            "passwordPolicy",
            {**DEFAULTS, "allowedFailedAttempts": 3},
        ),
        (
            policy(allowedFailedAttempts=3),
            policy(allowedFailedAttempts=5, passwordExpirationDuration="60s"),
            IGNORE,
            "passwordPolicy",
            {"allowedFailedAttempts": 3, "passwordExpirationDuration": "60s"},
        ),
        (
            policy(passwordExpirationDuration=None),
            policy(passwordExpirationDuration="60s", enablePasswordVerification=True),
            IGNORE,
            "passwordPolicy",
            {"passwordExpirationDuration": "0s", "enablePasswordVerification": True},
        ),
        # Zero and false are values.
        (
            policy(allowedFailedAttempts=0, enablePasswordVerification=False),
            policy(allowedFailedAttempts=5, enablePasswordVerification=True),
            IGNORE,
            "passwordPolicy",
            {"allowedFailedAttempts": 0, "enablePasswordVerification": False},
        ),
        # Paths of the policy of fields.
        (
            policy(),
            policy(allowedFailedAttempts=5, enablePasswordVerification=True),
            LISTED,
            "passwordPolicy",
            {**DEFAULTS, "enablePasswordVerification": True},
        ),
        (policy(enablePasswordVerification=False), policy(enablePasswordVerification=True), LISTED, VERIFY, False),
        (policy(enablePasswordVerification=False), policy(enablePasswordVerification=True), UNMANAGED, VERIFY, True),
        # The type is immutable: an unspecified one is kept.
        (spec(), spec(type="CLOUD_IAM_USER"), PRUNE, "type", "CLOUD_IAM_USER"),
        (spec(), spec(), PRUNE, "type", "BUILT_IN"),
        (spec(type="BUILT_IN"), spec(type="CLOUD_IAM_USER"), PRUNE, "type", "BUILT_IN"),
        # The password is the declared one, or none.
        (spec(password={"value": "x"}), spec(), PRUNE, "password", {"value": "x"}),
        (spec(), spec(), IGNORE, "password", None),
        (spec(password={"value": "x"}), spec(), UNMANAGED, "password", None),
    ],
)
def test_a_field_of_a_user(
    declared: SqlUserSpec, live: SqlUserSpec, rules: FieldPolicy, field: str, wanted: object
) -> None:
    before = canonical(declared), canonical(live)

    desired = msgspec.to_builtins(desired_user(declared, live, rules))

    assert {**desired, **desired.get("passwordPolicy", {})}.get(field) == wanted
    assert (canonical(declared), canonical(live)) == before


def test_a_new_user_is_as_the_spec_declares() -> None:
    declared = spec(password={"value": "x"}, passwordPolicy={"allowedFailedAttempts": 3})

    for rules in (PRUNE, UNMANAGED):
        wanted = msgspec.to_builtins(desired_user(declared, MISSING, rules))
        assert (wanted["password"], wanted["passwordPolicy"]["allowedFailedAttempts"]) == ({"value": "x"}, 3)


def test_a_password_is_not_in_the_repr_of_its_spec() -> None:
    assert "hunter2" not in repr(spec(password={"value": "hunter2"}))
