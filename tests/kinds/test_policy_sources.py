"""Members that come from other resources; audit configs of a whole policy."""

import asyncio
from typing import Any, Final

import pytest

from setpoint.engine.kind import Reference, ResolvedReferences
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyNotReady
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.gcp.iam.grants import Grant
from setpoint.kinds.gcp.iam.members import grant_of
from setpoint.kinds.gcp.iam.policy_member import PolicyMemberKind
from setpoint.kinds.gcp.iam.spec import PolicyMemberSpec
from tests.kinds.lifecycle_google import PROJECT
from tests.kinds.policy_harness import PROJECT_PATH, PROJECT_REF, PolicyHarness, policy_harness

EMAIL: Final = f"app@{PROJECT}.iam.gserviceaccount.com"
ROLE: Final = "roles/viewer"
LOGS: Final = {"service": "allServices", "auditLogConfigs": [{"logType": "DATA_READ"}]}


def _member(source: dict[str, Any]) -> Resource:
    return Resource(
        {
            "apiVersion": "iam.cnrm.cloud.google.com/v1beta1",
            "kind": "IAMPolicyMember",
            "metadata": {"name": "m", "namespace": "team"},
            "spec": {"resourceRef": PROJECT_REF, "role": ROLE, "memberFrom": source},
        }
    )


def _target(status: dict[str, Any]) -> Resource:
    return Resource(
        {"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "t", "namespace": "team"}, "status": status}
    )


@pytest.mark.parametrize(
    ("field", "more", "status", "member"),
    [
        (
            "serviceAccountRef",
            {},
            {"setpoint": {"location": f"projects/{PROJECT}/serviceAccounts/{EMAIL}"}},
            f"serviceAccount:{EMAIL}",
        ),
        ("logSinkRef", {}, {"writerIdentity": f"serviceAccount:{EMAIL}"}, f"serviceAccount:{EMAIL}"),
        ("serviceIdentityRef", {}, {"observedState": {"email": EMAIL}}, f"serviceAccount:{EMAIL}"),
        ("sqlInstanceRef", {}, {"serviceAccountEmailAddress": EMAIL}, f"serviceAccount:{EMAIL}"),
        (
            "bigQueryConnectionConnectionRef",
            {"type": "cloudSQL"},
            {"observedState": {"spark": {"serviceAccountID": "no"}, "cloudSql": {"serviceAccountID": EMAIL}}},
            f"serviceAccount:{EMAIL}",
        ),
    ],
)
def test_a_member_is_the_account_of_another_resource_once_that_has_one(
    field: str, more: dict[str, str], status: dict[str, Any], member: str
) -> None:
    resource = _member({field: {"name": "t", **more}})
    spec, at = decode_spec(resource, PolicyMemberSpec), f"spec.memberFrom.{field}"

    (found,) = PolicyMemberKind(None).dependencies(resource)  # type: ignore[arg-type] # nothing is sent
    assert isinstance(found, Reference)
    assert (found.field, found.target.name) == (at, "t")
    assert grant_of(spec, ResolvedReferences({at: _target(status)})) == Grant(ROLE, member)
    with pytest.raises(DependencyNotReady):
        grant_of(spec, ResolvedReferences({at: _target({})}))


@pytest.mark.parametrize("external", [EMAIL, f"projects/{PROJECT}/serviceAccounts/{EMAIL}"])
def test_an_account_that_is_no_resource_is_named_by_itself(external: str) -> None:
    resource = _member({"serviceAccountRef": {"external": external}})

    found = grant_of(decode_spec(resource, PolicyMemberSpec), ResolvedReferences())

    assert found == Grant(ROLE, f"serviceAccount:{EMAIL}")


async def _apply_policy(harness: PolicyHarness, **spec: Any) -> ResourceRef:
    bindings = [{"role": ROLE, "members": ["user:a@example.com"]}]
    ref = await harness.apply("IAMPolicy", "all", {"resourceRef": PROJECT_REF, "bindings": bindings, **spec})
    await harness.run([ref])
    return ref


def _audited(harness: PolicyHarness) -> Any:
    found = harness.cloud.google.state.policies[f"cloudresourcemanager/projects/{PROJECT}"]
    return found.get("auditConfigs", [])


def test_audit_configs_are_set_when_they_are_declared_and_stay_as_they_are_otherwise() -> None:
    async def act() -> list[Any]:
        async with policy_harness() as harness:
            body = {"policy": {"auditConfigs": [LOGS]}, "updateMask": "auditConfigs"}
            assert harness.cloud.call("POST", f"{PROJECT_PATH}:setIamPolicy", body).status == 200
            await _apply_policy(harness)
            seen = [_audited(harness)]
            declared = {"service": "storage.googleapis.com", "auditLogConfigs": [{"logType": "ADMIN_READ"}]}
            ref = await _apply_policy(harness, auditConfigs=[declared])
            seen.append(_audited(harness))
            await harness.store.delete(ref)
            await harness.run([ref])
            return [*seen, _audited(harness)]

    left, declared, deleted = asyncio.run(act())

    assert left == [LOGS]
    assert [one["service"] for one in declared] == ["storage.googleapis.com"]
    assert deleted == []
