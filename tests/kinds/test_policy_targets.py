"""Every kind with an IAM policy is a target: members are added, kept beside those of others, and removed."""

import asyncio
import re
from typing import Any, Final

import pytest

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import facts_of
from setpoint.clients.google.client import GoogleTenant
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome
from setpoint.engine.step.reconcile import preview
from setpoint.kinds.gcp.generic.placement import templates_of
from setpoint.kinds.gcp.iam.grants import Grant, GrantCondition, bindings_of, grants_in
from setpoint.kinds.gcp.iam.policies import BatchSettings, GrantChange, PolicyClient, PolicyDocument
from setpoint.kinds.gcp.iam.targets import PolicyTarget, has_policy
from setpoint.localcloud.google.operations import CatalogueObject
from setpoint.testing import Interruption, after_any_await
from tests.kinds.lifecycle_google import PROJECT
from tests.kinds.policy_harness import PolicyHarness, policy_harness

THEIRS: Final = Grant("roles/editor", "group:others@example.com")
SOON: Final = GrantCondition("soon", "", "request.time < timestamp('2030-01-01T00:00:00Z')")
CONTAINERS: Final = {
    "Folder": "folders/123",
    "Organization": "organizations/123",
    "BillingAccount": "billingAccounts/0123AB-0123AB-0123AB",
    "Project": f"projects/{PROJECT}",
}


def _names() -> dict[str, tuple[str, str]]:
    """The API and the relative name of an object of each kind that has a policy."""
    found = {name: ("cloudresourcemanager", place) for name, place in CONTAINERS.items()}
    for name in kinds_by_group():
        if name[1] not in found and has_policy(name[1]):
            row = facts_of(name)
            template = templates_of(row)[0].replace("{project}", PROJECT).replace("{location}", "europe-west1")
            found[name[1]] = (row.api, re.sub(r"\{\w+\}", "one1", template))
    return found


NAMES: Final = _names()


def _policy_key(kind: str) -> str:
    api, name = NAMES[kind]
    return f"cloudresourcemanager/{name}" if kind in CONTAINERS else f"{api}/{name}"


def _grants(harness: PolicyHarness, kind: str) -> frozenset[Grant]:
    return grants_in(harness.cloud.google.state.policies.get(_policy_key(kind), {}).get("bindings", ()))


def test_there_are_as_many_kinds_with_a_policy_as_the_page_says() -> None:
    assert len(NAMES) >= 90
    assert {"PubSubTopic", "KMSCryptoKey", "BigQueryTable", "SecretManagerSecret", "IAMServiceAccount"} <= set(NAMES)
    assert not has_policy("SQLInstance")


def test_a_member_with_a_condition_is_added_to_and_removed_from_the_policy_of_every_such_kind() -> None:
    async def act() -> tuple[dict[str, StepOutcome], dict[str, StepOutcome]]:
        async with policy_harness() as harness:
            state = harness.cloud.google.state
            refs = {}
            for kind, (api, name) in NAMES.items():
                state.objects.setdefault(f"{api}/{name}", CatalogueObject({"name": name}))
                state.policies[_policy_key(kind)] = {"version": 1, "etag": "BwX=", "bindings": bindings_of([THEIRS])}
                spec: JsonObject = {
                    "resourceRef": {"kind": kind, "external": name},
                    "role": "roles/browser",
                    "member": "user:a@example.com",
                    "condition": SOON.body,
                }
                refs[kind] = await harness.apply("IAMPolicyMember", kind.lower(), spec)
            outcomes = await harness.run(list(refs.values()))
            ours = Grant("roles/browser", "user:a@example.com", SOON)
            added = {
                kind: outcomes[ref]
                for kind, ref in refs.items()
                if not isinstance(outcomes[ref], Settled) or _grants(harness, kind) != {THEIRS, ours}
            }
            for ref in refs.values():
                await harness.store.delete(ref)
            outcomes = await harness.run(list(refs.values()))
            removed = {
                kind: outcomes[ref]
                for kind, ref in refs.items()
                if not isinstance(outcomes[ref], Gone) or _grants(harness, kind) != {THEIRS}
            }
            return added, removed

    wrongly_added, wrongly_removed = asyncio.run(act())

    assert (wrongly_added, wrongly_removed) == ({}, {})


@pytest.mark.parametrize("kind", ["IAMPolicyMember", "IAMPartialPolicy"])
def test_what_another_writer_grants_and_revokes_after_any_await_of_a_step_stays_so(kind: str) -> None:
    """Both kinds write the policy with the etag that it was read with, and read again when it has changed."""
    mine, revoked = Grant("roles/viewer", "user:mine@example.com"), Grant("roles/editor", "user:gone@example.com")
    target = {"resourceRef": {"kind": "Project", "external": f"projects/{PROJECT}"}}
    specs: dict[str, JsonObject] = {
        "IAMPolicyMember": {**target, "role": mine.role, "member": mine.member},
        "IAMPartialPolicy": {**target, "bindings": [{"role": mine.role, "members": [{"member": mine.member}]}]},
    }

    async def happens_after(awaits: int) -> bool:
        async with policy_harness() as harness:
            harness.set_grants([revoked])

            async def other_writer() -> None:
                harness.set_grants([one for one in harness.grants() if one != revoked] + [THEIRS])

            interruption = Interruption(awaits, other_writer)
            harness.google = interruption.wrap(harness.google)
            harness.restart()
            ref = await harness.apply(kind, "mine", specs[kind])
            outcomes = await harness.run([ref])

            if not interruption.has_happened:
                assert harness.grants() == {mine, revoked}
                return False
            assert isinstance(outcomes[ref], Settled), outcomes[ref]
            assert harness.grants() == {mine, THEIRS}, f"after await {awaits}"
            return True

    asyncio.run(after_any_await(happens_after, least=2))


def test_a_whole_policy_says_in_its_plan_which_members_of_others_it_removes() -> None:
    async def act() -> tuple[str, frozenset[Grant]]:
        async with policy_harness() as harness:
            harness.set_grants([THEIRS])
            spec: JsonObject = {
                "resourceRef": {"kind": "Project", "external": f"projects/{PROJECT}"},
                "bindings": [{"role": "roles/viewer", "members": ["user:mine@example.com"]}],
            }
            ref = await harness.apply("IAMPolicy", "all", spec)
            plan = await preview(ref, harness.engine)
            await harness.run([ref])
            return str(plan.to_data()), harness.grants()

    plan, grants = asyncio.run(act())

    assert THEIRS.member in plan
    assert grants == {Grant("roles/viewer", "user:mine@example.com")}


# --- Ten thousand members ---------------------------------------------------------------------------------------------

MEMBERS: Final = [Grant("roles/viewer", f"user:u{number}@example.com") for number in range(10_000)]
ON_PROJECT: Final = PolicyTarget("Project", f"projects/{PROJECT}")


async def _send(client: PolicyClient, grants: list[Grant]) -> list[str]:
    """Asks for each grant, as a resource of its own does; the names of the batches they are in."""
    answers = await asyncio.gather(*(client.change(ON_PROJECT, GrantChange(add=(one,))) for one in grants))
    return [one for one in answers if not isinstance(one, PolicyDocument)]


def _batches() -> list["asyncio.Task[Any]"]:
    """What a process still has to send."""
    return [one for one in asyncio.all_tasks() if "_send_batch" in repr(one.get_coro())]


async def _until_sent(client: PolicyClient, names: list[str]) -> None:
    while not all(map(client.is_sent, names)):
        await asyncio.sleep(0.01)


def test_ten_thousand_members_of_one_project_take_at_most_twenty_writes_though_the_process_is_killed_once() -> None:
    async def act() -> tuple[int, frozenset[Grant]]:
        async with policy_harness() as harness:
            harness.set_grants([THEIRS])
            harness.cloud.journal.clear()
            # Five batches are full, and sent; the sixth is still collecting when the process is killed.
            first = PolicyClient(harness.google, GoogleTenant(), BatchSettings(quiet_seconds=3600))
            names = await _send(first, MEMBERS[:5_500])
            await _until_sent(first, names[:5_000])
            for task in _batches():
                task.cancel()
            second = PolicyClient(harness.google, GoogleTenant(), BatchSettings(quiet_seconds=0.05))
            document = await second.read(ON_PROJECT)
            assert document is not None
            left = [one for one in MEMBERS if one not in document.grants]
            await _until_sent(second, await _send(second, left))
            return harness.requests("setIamPolicy"), harness.grants()

    writes, grants = asyncio.run(act())

    assert grants == {*MEMBERS, THEIRS}
    assert writes <= 20
