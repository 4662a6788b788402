"""IAMPolicyMembers: many in few writes, one by one beside other writers, and what a service refuses."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import pytest

from setpoint.clients.google.calls import GoogleCall
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled, Stopped
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import ManifestInvalid, OperationRunning
from setpoint.kinds.gcp.iam.grants import Grant
from setpoint.kinds.gcp.iam.policies import BatchSettings
from setpoint.kinds.gcp.iam.policy_member import PolicyMemberKind
from tests.kinds.policy_harness import PROJECT_REF, PolicyHarness, policy_harness

KIND: Final = ("iam.cnrm.cloud.google.com", "IAMPolicyMember")
VIEWER: Final = "roles/viewer"
# Basic roles cannot have conditions.
BROWSER: Final = "roles/browser"
OTHERS: Final = Grant("roles/owner", "user:other@example.com")
CONDITION: Final = {"title": "soon", "expression": 'request.time < timestamp("2030-01-01T00:00:00Z")'}
# A second change of the same policy is collected, and a batch is sent as soon as the loop is idle.
COLLECTING: Final = BatchSettings(at_once=1, quiet_seconds=0.05)


def member(name: str, **more: Any) -> dict[str, Any]:
    """The spec of a member of the project's policy."""
    return {"resourceRef": PROJECT_REF, "role": VIEWER, "member": f"user:{name}@example.com", **more}


async def declare(harness: PolicyHarness, *names: str) -> list[ResourceRef]:
    """Applies a resource for each name."""
    return [await harness.apply("IAMPolicyMember", name, member(name)) for name in names]


def test_many_members_take_few_writes_and_few_reads() -> None:
    async def act() -> tuple[Counter[str], int, int, int, frozenset[Grant]]:
        async with policy_harness() as harness:
            harness.set_grants([OTHERS])
            refs = await declare(harness, *(f"u{number}" for number in range(500)))
            harness.cloud.journal.clear()
            outcomes = Counter(type(one).__name__ for one in (await harness.run(refs)).values())
            writes, reads = harness.requests("setIamPolicy"), harness.requests("getIamPolicy")
            return outcomes, len(harness.grants()), writes, reads, harness.grants() & {OTHERS}

    outcomes, grants, writes, reads, others = asyncio.run(act())

    assert (outcomes, grants, others) == (Counter({"Settled": 500}), 501, frozenset({OTHERS}))
    # The first four are sent at once, the others together.
    assert writes <= 5
    assert reads <= 100


def test_many_deletions_take_few_writes_and_leave_the_members_of_others() -> None:
    async def act() -> tuple[Counter[str], int, frozenset[Grant]]:
        async with policy_harness() as harness:
            refs = await declare(harness, *(f"u{number}" for number in range(100)))
            await harness.run(refs)
            harness.set_grants(harness.grants() | {OTHERS})
            harness.cloud.journal.clear()
            for ref in refs:
                await harness.store.delete(ref)
            outcomes = Counter(type(one).__name__ for one in (await harness.run(refs)).values())
            return outcomes, harness.requests("setIamPolicy"), harness.grants()

    outcomes, writes, grants = asyncio.run(act())

    assert (outcomes, grants) == (Counter({"Gone": 100}), frozenset({OTHERS}))
    assert writes <= 5


def test_one_member_that_the_service_refuses_does_not_keep_the_others_of_its_batch() -> None:
    async def act() -> tuple[dict[str, str], frozenset[Grant]]:
        async with policy_harness(COLLECTING) as harness:
            refs = await declare(harness, *"abcdefg")
            bad = await harness.apply("IAMPolicyMember", "bad", member("x", member="usr:x@example.com"))
            outcomes = await harness.run([*refs, bad])
            return {ref.name: type(one).__name__ for ref, one in outcomes.items()}, harness.grants()

    outcomes, grants = asyncio.run(act())

    assert outcomes == {**dict.fromkeys("abcdefg", "Settled"), "bad": "Stopped"}
    assert grants == {Grant(VIEWER, f"user:{name}@example.com") for name in "abcdefg"}


def test_a_batch_of_a_process_that_was_killed_is_sent_by_the_next_one() -> None:
    async def act() -> tuple[list[str], frozenset[Grant]]:
        async with policy_harness(BatchSettings(at_once=1, quiet_seconds=3600)) as harness:
            refs = await declare(harness, *"ab")
            first = [await step(ref, harness.engine) for ref in refs]
            assert isinstance(first[1], Stopped)
            assert isinstance(first[1].error, OperationRunning)
            harness.restart()
            outcomes = [await step(ref, harness.engine) for ref in refs]
            return [type(one).__name__ for one in outcomes], harness.grants()

    outcomes, grants = asyncio.run(act())

    assert outcomes == ["Settled", "Settled"]
    assert grants == {Grant(VIEWER, "user:a@example.com"), Grant(VIEWER, "user:b@example.com")}


def test_a_raised_revision_writes_nothing_to_members_that_the_former_one_made() -> None:
    async def act() -> tuple[int, str, bool]:
        async with policy_harness() as harness:
            refs = await declare(harness, "a")
            await harness.run(refs)
            harness.cloud.journal.clear()
            kind = harness.engine.kinds[KIND]
            assert isinstance(kind, PolicyMemberKind)
            engine = replace(harness.engine, kinds={KIND: replace(kind, revision=2)})
            planned = await preview(refs[0], engine)
            outcome = await step(refs[0], engine)
            return harness.requests("setIamPolicy"), str(planned.writes), isinstance(outcome, Settled)

    assert asyncio.run(act()) == (0, "()", True)


def test_a_member_that_another_writer_removed_comes_back() -> None:
    async def act() -> frozenset[Grant]:
        async with policy_harness() as harness:
            refs = await declare(harness, "a")
            await harness.run(refs)
            harness.set_grants([OTHERS])
            await harness.run(refs)
            return harness.grants()

    assert asyncio.run(act()) == {OTHERS, Grant(VIEWER, "user:a@example.com")}


def test_a_member_that_was_there_is_adopted_without_a_write_whatever_its_case() -> None:
    async def act() -> tuple[bool, int, bool, frozenset[Grant]]:
        async with policy_harness() as harness:
            harness.set_grants([Grant(VIEWER, "user:jo@example.com"), OTHERS])
            ref = await harness.apply("IAMPolicyMember", "jo", member("Jo", member="user:Jo@Example.com"))
            harness.cloud.journal.clear()
            adopted = await step(ref, harness.engine)
            writes = harness.requests("setIamPolicy")
            await harness.store.delete(ref)
            return (
                isinstance(adopted, Settled),
                writes,
                isinstance(await step(ref, harness.engine), Gone),
                harness.grants(),
            )

    assert asyncio.run(act()) == (True, 0, True, frozenset({OTHERS}))


def test_a_member_with_a_condition_is_another_than_the_one_without() -> None:
    async def act() -> frozenset[Grant]:
        async with policy_harness() as harness:
            harness.set_grants([Grant(BROWSER, "user:a@example.com")])
            ref = await harness.apply("IAMPolicyMember", "a", member("a", role=BROWSER, condition=CONDITION))
            await harness.run([ref])
            assert len(harness.grants()) == 2
            await harness.store.delete(ref)
            await harness.run([ref])
            return harness.grants()

    assert asyncio.run(act()) == {Grant(BROWSER, "user:a@example.com")}


def test_a_deleted_service_account_of_the_same_name_is_left_alone() -> None:
    gone = Grant(VIEWER, "deleted:serviceAccount:app@some-project.iam.gserviceaccount.com?uid=123")

    async def act() -> frozenset[Grant]:
        async with policy_harness() as harness:
            harness.set_grants([gone])
            account = "serviceAccount:app@some-project.iam.gserviceaccount.com"
            ref = await harness.apply("IAMPolicyMember", "a", member("a", member=account))
            await harness.run([ref])
            await harness.store.delete(ref)
            await harness.run([ref])
            return harness.grants()

    assert asyncio.run(act()) == {gone}


def test_a_change_of_another_writer_between_read_and_write_is_kept() -> None:
    async def act() -> frozenset[Grant]:
        async with policy_harness() as harness:
            refs = await declare(harness, "a")
            calls = iter((True,))
            original = harness.google.post

            async def post(call: GoogleCall, body: Json = None) -> bytes:
                if next(calls, False):
                    harness.set_grants([OTHERS])
                return await original(call, body)

            harness.google.post = post  # type: ignore[method-assign] # another writer acts before our write
            await harness.run(refs)
            return harness.grants()

    assert asyncio.run(act()) == {OTHERS, Grant(VIEWER, "user:a@example.com")}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"resourceRef": {"kind": "SQLInstance", "external": "i"}},
            "spec.resourceRef.kind is 'SQLInstance', and objects of that kind have no IAM policy: its access is a "
            "field of its own spec; grant the role on its project",
        ),
        ({"resourceRef": {"kind": "PubSubTopic"}}, "spec.resourceRef needs name or external: write one of them"),
        (
            {"resourceRef": {"kind": "Organization", "name": "acme"}},
            "spec.resourceRef.name is of no resource: write external, such as organizations/123",
        ),
        (
            {"resourceRef": {"kind": "PubSubTopic", "external": "projects/p/t"}},
            "spec.resourceRef.external is 'projects/p/t': write projects/{project}/topics/{topic}",
        ),
        ({"member": "", "memberFrom": {}}, "spec has no member: write member, or a reference in memberFrom"),
    ],
)
def test_an_invalid_spec_says_what_to_do(spec: dict[str, Any], message: str) -> None:
    async def act() -> None:
        async with policy_harness() as harness:
            ref = await harness.apply("IAMPolicyMember", "a", member("a", **spec))
            kind = harness.engine.kinds[ref.group_kind]
            resource = await harness.store.get(ref)
            assert resource is not None
            kind.check(resource)
            await preview(ref, harness.engine)

    with pytest.raises(ManifestInvalid) as raised:
        asyncio.run(act())

    assert message in str(raised.value)
