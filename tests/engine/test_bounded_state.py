"""The status stays small: neither the spec, the live object nor a service decides the size of what is stored."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.conditions import ConditionReason
from setpoint.core.decide import Cookie
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import Json
from setpoint.core.write_attempt import WriteAttempt
from setpoint.engine.conditions import ReadyCondition, ReadyDetails, not_converged, with_conditions
from setpoint.engine.contention.oscillation import Oscillations
from setpoint.engine.kind import Location
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState, bounded_server_defaults, known_server_defaults
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import BlockingLink
from setpoint.testing.harness import ContractHarness, contract_harness
from tests.engine.gadget_fixture import GadgetFixture
from tests.laws.json_values import json_values

NOW = "2026-01-01T00:00:00Z"
INTENT = "a" * 64
PORTS: list[Json] = [{"name": f"port-{number}", "number": number} for number in range(400)]


async def _size(harness: ContractHarness) -> int:
    return len(canonical((await harness.resource()).status))


def test_a_service_that_keeps_hundreds_of_its_own_values_is_not_asked_twice() -> None:
    async def play() -> None:
        async with contract_harness(GadgetFixture()) as harness:
            await harness.rewrite("ports", PORTS)
            shown: Any = (await harness.settle()).status["serverDefaults"]
            written = len(harness.writes)

            assert (shown[0], shown[-1]) == ("spec.ports[name=port-0]", "… and 357 more fields")
            assert await _size(harness) < 8192
            assert isinstance(await harness.step(), Settled)
            await harness.change()
            await harness.go_on()
            # The new size alone; not the ports once more.
            assert harness.writes[written:] == ["update"]

    asyncio.run(play())


def test_hundreds_of_fields_that_a_service_ignores_are_sent_once_for_an_operation() -> None:
    async def play() -> None:
        async with contract_harness(GadgetFixture()) as harness:
            await harness.settle()
            await harness.rewrite("ports", [])
            await harness.make_slow()
            await harness.apply({"size": 1, "ports": PORTS})
            written = len(harness.writes)
            await harness.step()
            attempt = StoredState.of(await harness.resource()).attempt
            await harness.finish()
            outcome = await harness.step()

            assert attempt is not None
            assert (attempt.sent, attempt.sent_writes) == ((), ("update",))
            assert harness.writes[written:] == ["update"]
            assert isinstance(outcome, Settled)
            assert outcome.ready.reason == ConditionReason.NOT_CONVERGED
            assert "spec.ports[name=port-0]" in outcome.ready.message
            assert await _size(harness) < 16_384

    asyncio.run(play())


def test_the_message_of_a_service_is_shortened_wherever_it_is_stored() -> None:
    async def play() -> None:
        async with contract_harness(GadgetFixture()) as harness:
            await harness.settle()
            await harness.make_slow()
            await harness.fail_operation("x" * 100_000 + " the end")
            await harness.apply({"size": 2})
            await harness.step()
            await harness.finish()
            await harness.step()
            status: Any = (await harness.resource()).status
            events = await harness.store.events(harness.ref)

            assert status["conditions"][0]["message"].endswith("x the end")
            assert "… (shortened from 100,0" in status["conditions"][0]["message"]
            assert await _size(harness) < 8192
            assert max(len(event.message.encode()) for event in events) <= 1024

    asyncio.run(play())


def test_a_long_reconcile_request_is_echoed_by_its_digest() -> None:
    async def play() -> None:
        async with contract_harness(GadgetFixture()) as harness:
            await harness.settle()
            request = {"setpoint.dev/reconcile-requested-at": "now " * 50_000}
            await harness.store.annotate(await harness.resource(), request)
            calls = len(harness.calls)
            await harness.step()
            asked = len(harness.calls) - calls
            resource = await harness.resource()
            await harness.step()

            assert asked
            assert str(resource.status["lastHandledReconcileAt"]).startswith("sha256:")
            assert len(str(resource.status["lastHandledReconcileAt"])) == 71
            assert (await harness.resource()).revision == resource.revision

    asyncio.run(play())


def test_many_fields_that_did_not_converge_are_counted() -> None:
    ready = not_converged(tuple(f"spec.field{number}" for number in range(2000)))

    assert "spec.field19 and 1,980 more. Nothing more is written" in ready.message


def test_of_many_server_defaults_those_that_are_the_same_are_known() -> None:
    many = {f"spec.labels.k{number}": f"{number:016x}" for number in range(1000)}
    stored = bounded_server_defaults(many)

    assert len(canonical(stored)) < 2300
    assert bounded_server_defaults(stored) is stored
    assert known_server_defaults(stored, many) is many
    assert known_server_defaults(stored, {**many, "spec.other": "0" * 16}) is stored
    assert known_server_defaults({"spec.a": "1"}, many) == {"spec.a": "1"}


texts = st.text() | st.just("é" * 400) | st.just('"\\' * 400)
fields = st.dictionaries(texts, st.text(max_size=16), max_size=8).map(
    lambda found: found | {f"spec.f{number}": "0" * 16 for number in range(len(found) * 40)}
)


@pytest.mark.laws
@given(
    defaults=fields,
    attempts=st.lists(st.lists(texts, max_size=8).map(tuple), max_size=4),
    step=json_values,
    contests=st.lists(texts, max_size=20),
    message=texts,
)
def test_stored_state_has_a_bounded_size(
    defaults: dict[str, str], attempts: list[tuple[str, ...]], step: Json, contests: list[str], message: str
) -> None:
    attempt = WriteAttempt(INTENT)
    for number, paths in enumerate(attempts):
        attempt = attempt.with_sent(f"stage {number}", paths)
    entries: list[Json] = [{"path": one, "theirs": [], "count": 1, "since": NOW, "last": NOW} for one in contests]
    state = StoredState(
        Cookie(INTENT, INTENT),
        Location("here"),
        attempt=attempt,
        server_defaults=defaults,
        step={"writes": [{"changes": [{"path": "spec.a", "before": step, "after": "x" * 9000}]}], "kept": []},
        oscillations=Oscillations.of({"intent": INTENT, "fields": entries}),
    )
    details = ReadyDetails(message, tuple(BlockingLink(None, message) for _ in range(8)))
    ready = ReadyCondition("False", ConditionReason.UPDATE_FAILED, message, details)
    status = with_conditions(state.into({}, with_cookie=True), 1, ready, state.oscillations.reported, NOW)
    read = StoredState.of(Resource({"status": status}))

    assert len(canonical(status)) < 65_536
    assert canonical(read.into({}, with_cookie=True)) == canonical(
        {name: value for name, value in status.items() if name not in ("conditions", "observedGeneration")}
    )
    assert replace(read, step=None, ready_details=None).attempt == state.attempt
