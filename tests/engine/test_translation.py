"""What goes along in a move, and in what terms."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from setpoint.core.decide import Decision
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.management import CookieLocation
from setpoint.engine.resource import Resource
from setpoint.engine.state import COOKIE_ANNOTATION, RECONCILE_REQUESTED, AppliedIntent, StoredState
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.transfer.export_format import StateTranslation, translate_state
from setpoint.stores.memory import MemoryStore
from setpoint.testing.faults import CallFault
from tests.engine.clock import FakeClock
from tests.engine.gadgets import Fault, gadget_ref
from tests.engine.transfer_harness import TransferHarness, bring, export_of, moved, new_store

AGAIN = "spec.password is not known to be the same here: it counts as new, and is sent once"


def play(scenario: Callable[[TransferHarness], Awaitable[None]], **options: Any) -> None:
    """Plays `scenario` in a new house."""
    clock = FakeClock()
    asyncio.run(_awaited(scenario(TransferHarness(new_store(clock, "old"), clock, **options))))


async def _awaited(action: Awaitable[None]) -> None:
    await action


async def transferred(old: TransferHarness, **options: Any) -> tuple[TransferHarness, dict[str, tuple[str, ...]]]:
    """The new store, and the remarks about each gadget that is imported."""
    new = TransferHarness(
        new_store(old.clock, "new"), old.clock, old.service, old.reconciliation, old.cookies, old.revision
    )
    arrivals = await bring(new, await export_of(old, **options))
    return new, {arrival.ref.name: arrival.remarks for arrival in arrivals}


async def decision_of(harness: TransferHarness, name: str) -> tuple[Decision, list[tuple[str, str]]]:
    """Why the next step acts, or does not, and the writes that it sends."""
    harness.service.calls.clear()
    outcome = await harness.step(name)
    assert isinstance(outcome, Settled), outcome
    return outcome.plan.decision, harness.writes


# --- Cookies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cookies", list(CookieLocation))
def test_the_first_step_is_a_fast_one_that_writes_nothing_anywhere(cookies: CookieLocation) -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.secret("first")
        await old.apply("a", {"size": 1, "passwordRef": "s", "password": "own"}, labels={"team": "web"})
        await old.settle("a")
        new, remarks = await transferred(old)
        before = await new.resource("a")

        decision, writes = await decision_of(new, "a")

        assert (remarks, decision, writes) == ({"a": ()}, Decision.IN_SYNC, [])
        assert (await new.resource("a")).revision == before.revision
        assert before.uid == "new-2"

    play(scenario, cookies=cookies)


@pytest.mark.parametrize("cookies", list(CookieLocation))
def test_a_cookie_stays_where_it_was_kept(cookies: CookieLocation) -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.apply("a", {"size": 1})
        await old.settle("a")

        there = await (await moved(old)).resource("a")

        is_annotated = cookies is CookieLocation.ANNOTATION
        assert (COOKIE_ANNOTATION in there.annotations, "lastModifiedCookie" in there.status) == (
            is_annotated,
            not is_annotated,
        )

    play(scenario, cookies=cookies)


def test_only_the_half_that_speaks_of_this_store_is_another() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.apply("a", {"size": 1, "password": "own"})
        await old.settle("a")

        there = await (await moved(old)).resource("a")

        here, then = StoredState.of(await old.resource("a")).cookie, StoredState.of(there).cookie
        assert here is not None
        assert then is not None
        assert (here.live == then.live, here.intent == then.intent) == (True, False)

    play(scenario)


def test_an_edit_that_was_pending_is_still_pending() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.apply("a", {"size": 1})
        await old.settle("a")
        await old.apply("a", {"size": 2})
        new, remarks = await transferred(old)

        assert remarks == {"a": ("not settled where it came from: what was left to do is left to do here",)}
        assert (await new.resource("a")).status["observedGeneration"] == 0
        assert await decision_of(new, "a") == (Decision.INTENT_CHANGED, [("update", "a")])

    play(scenario)


def test_drift_is_still_drift() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.apply("a", {"size": 1})
        await old.settle("a")
        old.service.objects["a"]["size"] = 9
        new, remarks = await transferred(old)

        assert remarks == {"a": ()}
        assert await decision_of(new, "a") == (Decision.DRIFTED, [("update", "a")])

    play(scenario)


def test_a_changed_kind_compares_every_field() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.apply("a", {"size": 1})
        await old.settle("a")
        export = await export_of(old)
        new = TransferHarness(new_store(old.clock, "new"), old.clock, old.service, revision=2)

        (arrival,) = await bring(new, export)

        remark = (
            "its labels, what it refers to, or its kind mean something else here: the next step compares every field"
        )
        assert arrival.remarks == (remark,)
        assert await decision_of(new, "a") == (Decision.REVISED, [])

    play(scenario)


class Tidy(MemoryStore):
    """Keeps no member that is null, as a cluster may."""

    async def apply(self, manifest: JsonObject) -> Resource:
        spec: Any = manifest.get("spec") or {}
        kept = {name: value for name, value in spec.items() if value is not None}
        return await super().apply({**manifest, "spec": kept})


def test_a_spec_that_reads_differently_there_is_compared_field_by_field() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.apply("a", {"size": 1, "parentRef": None, "password": "own"})
        await old.settle("a")
        new = TransferHarness(Tidy(old.clock, lambda: "new"), old.clock, old.service)

        (arrival,) = await bring(new, await export_of(old))

        remark = "its spec reads differently here: the next step compares every field"
        assert arrival.remarks == (remark, AGAIN)
        assert (await decision_of(new, "a"))[0] is Decision.INTENT_CHANGED

    play(scenario)


# --- Secrets ----------------------------------------------------------------------------------------------------------

WITH_SECRET = {"size": 1, "passwordRef": "s"}


def test_a_secret_that_was_not_exported_is_sent_once_and_reported() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.secret("first")
        await old.apply("a", WITH_SECRET)
        await old.settle("a")
        new = TransferHarness(new_store(old.clock, "new"), old.clock, old.service)
        await new.secret("first")

        (arrival,) = await bring(new, await export_of(old, with_secrets=False))

        assert arrival.remarks == (AGAIN,)
        assert await decision_of(new, "a") == (Decision.INTENT_CHANGED, [("update", "a")])
        assert await decision_of(new, "a") == (Decision.IN_SYNC, [])

    play(scenario)


def test_a_secret_that_was_rotated_and_not_sent_is_sent() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.secret("first")
        await old.apply("a", WITH_SECRET)
        await old.settle("a")
        await old.secret("second")
        new = await moved(old)

        assert await decision_of(new, "a") == (Decision.INTENT_CHANGED, [("update", "a")])
        assert new.service.passwords == {"a": "second"}

    play(scenario)


def test_a_secret_is_mapped_even_where_nothing_else_can_be() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.secret("first")
        await old.apply("p", {"size": 1})
        await old.apply("a", {**WITH_SECRET, "parentRef": "p"})
        await old.settle("p", "a")
        await old.store.set_finalizers(await old.resource("p"), ())
        await old.store.delete(gadget_ref("p"))
        new, remarks = await transferred(old)

        assert remarks == {"a": ("reference Gadget default/p is not found",)}
        assert StoredState.of(await new.resource("a")).secrets == {"spec.password": "new-1/1/password"}

    play(scenario)


def test_what_a_creation_under_way_hands_over_is_mapped_too() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.secret("first")
        await old.apply("a", WITH_SECRET)
        old.service.faults.append(Fault(CallFault.LOST, ["create"], 1))
        await old.settle("a")
        new = await moved(old)

        assert StoredState.of(await old.resource("a")).creating == {"spec.password": "old-1/1/password"}
        assert StoredState.of(await new.resource("a")).creating == {"spec.password": "new-1/1/password"}

    play(scenario)


# --- What continues ---------------------------------------------------------------------------------------------------


def test_a_dependant_of_one_that_is_not_ready_keeps_its_cookie() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.apply("p", {"size": 1})
        await old.apply("a", {"size": 1, "parentRef": "p"})
        await old.settle("p", "a")
        await old.apply("p", {"size": 2})
        new, remarks = await transferred(old)
        await new.settle("p")

        assert remarks["a"] == ()
        assert await decision_of(new, "a") == (Decision.IN_SYNC, [])

    play(scenario)


def test_what_a_service_did_not_follow_is_not_tried_again() -> None:
    async def scenario(old: TransferHarness) -> None:
        old.service.rewrites["size"] = 7
        await old.apply("a", {"size": 1})
        await old.settle("a", "a")
        new, _ = await transferred(old)
        new.service.calls.clear()

        outcome = await new.step("a")

        assert isinstance(outcome, Settled)
        assert (outcome.ready.reason, new.writes) == ("NotConverged", [])

    play(scenario)


def test_an_operation_that_was_under_way_is_asked_about() -> None:
    async def scenario(old: TransferHarness) -> None:
        old.service.slow = True
        await old.apply("a", {"size": 1})
        await old.settle("a")
        new, _ = await transferred(old)
        new.service.finish()

        assert StoredState.of(await new.resource("a")).operation is not None
        assert await decision_of(new, "a") == (Decision.FIRST_LOOK, [])

    play(scenario)


def test_an_open_reconcile_request_stays_open_and_a_handled_one_handled() -> None:
    async def scenario(old: TransferHarness) -> None:
        for name in ("a", "b"):
            await old.apply(name, {"size": 1})
            await old.store.annotate(await old.resource(name), {RECONCILE_REQUESTED: "now"})
        await old.settle("a")
        new, _ = await transferred(old)

        found = {name: await new.resource(name) for name in ("a", "b")}

        assert [one.annotations[RECONCILE_REQUESTED] for one in found.values()] == ["now", "now"]
        assert [StoredState.of(one).handled for one in found.values()] == ["now", None]

    play(scenario)


def test_a_deletion_continues() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.apply("a", {"size": 1})
        await old.settle("a")
        await old.store.delete(gadget_ref("a"))
        new, remarks = await transferred(old)
        await new.step("a")

        assert remarks == {"a": ("its deletion continues here",)}
        assert new.service.objects == {}
        assert await new.store.get(gadget_ref("a")) is None

    play(scenario)


def test_one_that_was_never_reconciled_comes_as_it_is() -> None:
    async def scenario(old: TransferHarness) -> None:
        await old.apply("a", {"size": 1})
        new, _ = await transferred(old)
        there = await new.resource("a")

        assert (there.status, there.finalizers) == ({}, ())
        assert await decision_of(new, "a") == (Decision.CREATE, [("create", "a")])

    play(scenario)


# --- What stays behind ------------------------------------------------------------------------------------------------


def test_owner_references_foreign_finalizers_and_last_applied_manifests_are_not_exported() -> None:
    async def scenario(old: TransferHarness) -> None:
        owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "old-uid"}
        copy = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"}
        await old.apply("a", {"size": 1}, annotations=copy, ownerReferences=[owner])
        await old.settle("a")
        await old.store.set_finalizers(await old.resource("a"), ("other.test/holds", "cnrm.cloud.google.com/finalizer"))

        there: Any = (await (await moved(old)).resource("a")).document["metadata"]

        assert there["annotations"] == {"kept": "yes"}
        assert there["finalizers"] == ["cnrm.cloud.google.com/finalizer"]
        assert "ownerReferences" not in there

    play(scenario)


def test_the_digest_of_what_the_author_wrote_does_not_outlive_the_intent_that_it_was_made_with() -> None:
    applied = AppliedIntent(2, "0123456789abcdef", ("89abcdef",))
    state = StoredState(applied=applied)

    assert translate_state(state, StateTranslation()).applied == applied
    assert translate_state(state, StateTranslation({"old": "new"})).applied == AppliedIntent(0, "", ("89abcdef",))
    assert translate_state(StoredState(), StateTranslation({"old": "new"})).applied is None
