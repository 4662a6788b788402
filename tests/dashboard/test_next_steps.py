"""When the next step of each resource is due: from the queue of the process, from others, or from what is on record."""

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.json_types import JsonObject
from setpoint.dashboard.api.models import Row
from setpoint.dashboard.process import ProcessBeside
from setpoint.dashboard.views.fleet import FleetRows
from setpoint.dashboard.views.next_steps import NextSteps
from setpoint.dashboard.views.rows import row_of
from setpoint.engine.resource import Resource, ResourceRef
from tests.engine.clock import FakeClock

REFS = [ResourceRef("g", "K", "n", name) for name in "abc"]
SOON, LATER = "2030-01-01T00:00:10Z", "2030-01-01T00:10:00Z"


@dataclass(slots=True)
class Processes:
    """A source of steps: what is set next in its queues, and what others say."""

    queued: dict[ResourceRef, float | None] = field(default_factory=dict)
    said: dict[ResourceRef, str] = field(default_factory=dict)

    def rescheduled(self) -> Mapping[ResourceRef, float | None]:
        found, self.queued = self.queued, {}
        return found

    async def others(self, refs: Collection[ResourceRef], tokens: Collection[str]) -> Mapping[ResourceRef, str]:
        return dict(self.said)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def row(ref: ResourceRef, **changed: Any) -> Row:
    text: JsonObject = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": ref.name, "namespace": ref.namespace}}
    return msgspec.structs.replace(row_of(Resource(text)), id=f"K.g/n/{ref.name}", group="g", **changed)


def steps_of(processes: Processes) -> tuple[FleetRows, NextSteps]:
    rows = FleetRows()
    for ref in REFS:
        rows.put(ref, row(ref))
    return rows, NextSteps(rows, processes, FakeClock())


@pytest.mark.laws
@given(
    st.lists(st.dictionaries(st.sampled_from(REFS), st.none() | st.floats(0, 10_000), min_size=1), max_size=8),
    st.integers(0, 8),
)
def test_a_reader_that_takes_what_changed_knows_every_time(
    turns: list[dict[ResourceRef, float | None]], reads_before: int
) -> None:
    async def main() -> None:
        processes = Processes()
        _, steps = steps_of(processes)
        known: dict[ResourceRef, str | None] = {}
        number = 0
        for turn, queued in enumerate(turns):
            processes.queued = queued
            steps.refresh()
            if turn < reads_before:
                known |= steps.since(number)
                number = steps.number
        known |= steps.since(number)

        assert {ref: known.get(ref) for ref in REFS} == {ref: steps.get(ref) for ref in REFS}
        assert steps.since(steps.number) == {}
        last = {ref: seconds for queued in turns for ref, seconds in queued.items()}
        assert {ref for ref in REFS if steps.get(ref)} == {ref for ref, seconds in last.items() if seconds is not None}

    run(main())


@pytest.mark.laws
@given(st.text(), st.dictionaries(st.text(), st.text()), st.none() | st.text())
def test_the_json_of_a_row_has_the_time_that_a_process_says(
    message: str, labels: dict[str, str], recorded: str | None
) -> None:
    async def main() -> None:
        rows = FleetRows()
        made = row(REFS[0], message=message, labels={**labels, "nextStep": message}, next_step=recorded)
        rows.put(REFS[0], made)
        encoded = rows.get(REFS[0])
        assert encoded is not None

        assert msgspec.json.decode(encoded.json_with(SOON), type=Row) == msgspec.structs.replace(made, next_step=SOON)
        assert msgspec.json.decode(encoded.json_with(None), type=Row) == made

    run(main())


def test_what_another_process_says_is_known_until_it_does_not_say_it_any_more() -> None:
    async def main() -> None:
        processes = Processes(said={REFS[0]: SOON, REFS[1]: SOON, ResourceRef("g", "K", "n", "gone"): SOON})
        _, steps = steps_of(processes)
        await steps.ask_others(())
        processes.said = {REFS[0]: LATER}
        before = steps.number
        await steps.ask_others(())

        assert steps.since(before) == {REFS[0]: LATER, REFS[1]: None}

    run(main())


@pytest.mark.parametrize("text", ["", "soon", "2030-13-01T00:00:00Z", "9999999-01-01", '"><script>'])
def test_a_time_that_is_none_is_not_taken_from_another_process(text: str) -> None:
    async def main() -> None:
        _, steps = steps_of(Processes(said={REFS[0]: text}))
        await steps.ask_others(())

        assert steps.number == 0

    run(main())


def test_a_time_that_another_process_tells_a_second_later_is_no_change() -> None:
    async def main() -> None:
        processes = Processes(said={REFS[0]: SOON})
        _, steps = steps_of(processes)
        await steps.ask_others(())
        processes.said = {REFS[0]: SOON.replace("10Z", "11Z")}
        await steps.ask_others(())

        assert (steps.number, steps.get(REFS[0])) == (1, SOON)

    run(main())


def test_what_this_process_does_itself_is_not_taken_from_others() -> None:
    async def main() -> None:
        processes = Processes(said={REFS[0]: LATER})
        _, steps = steps_of(processes)
        await steps.ask_others(())
        # Its shard is taken over.
        processes.queued = {REFS[0]: 30.0}
        steps.refresh()
        own = steps.get(REFS[0])
        await steps.ask_others(())
        processes.said = {}
        await steps.ask_others(())

        assert (steps.get(REFS[0]), own) == (own, steps.get(REFS[0]))
        assert own not in (None, LATER)

    run(main())


def test_resources_that_are_gone_are_forgotten() -> None:
    async def main() -> None:
        processes = Processes()
        rows, steps = steps_of(processes)
        names = [ResourceRef("g", "K", "n", f"x{number}") for number in range(1_100)]
        processes.queued = dict.fromkeys(names, 60.0)
        steps.refresh()

        assert len(list(steps)) == 0
        assert len(rows) == 3

    run(main())


def test_where_no_process_answers_beside_a_store_no_time_is_made_up(tmp_path: Path) -> None:
    assert asyncio.run(ProcessBeside(tmp_path / "state.db").others(REFS, ())) == {}
