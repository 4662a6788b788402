"""An oscillating field in the views of the command line."""

import asyncio
import datetime
import io

from rich.console import Console, RenderableType

from setpoint.cli.views.plan import plan_view
from setpoint.cli.views.resources import ResourceTable, description_of, explanation_of
from setpoint.engine.step.reconcile import preview
from setpoint.library.declared import DeclaredResource
from setpoint.library.inspection.records import ResourceDescription, StepExplanation
from setpoint.testing.harness import ContractHarness, contract_harness
from tests.engine.gadget_fixture import GadgetFixture

NOW = datetime.datetime(2026, 1, 1, 1, tzinfo=datetime.UTC)


def _printed(view: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=1000)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    # Columns apart, which another test covers.
    return " ".join(console.file.getvalue().split())


def _seen(drifts: int = 4) -> dict[str, str]:
    async def play(harness: ContractHarness) -> dict[str, str]:
        await harness.settle()
        for _ in range(drifts):
            await harness.drift()
            await harness.go_on()
        resource, notes = await harness.resource(), await harness.store.events()
        return {
            "describe": _printed(description_of(ResourceDescription(DeclaredResource(resource), notes), NOW)),
            "wide": _printed(ResourceTable(wide=True).lines([resource], NOW)),
            "explain": _printed(explanation_of(StepExplanation.of(resource))),
            "plan": _printed(plan_view(await preview(harness.ref, harness.engine))),
        }

    async def on_a_bench() -> dict[str, str]:
        async with contract_harness(GadgetFixture()) as harness:
            return await play(harness)

    return asyncio.run(on_a_bench())


def test_every_view_reports_the_oscillating_field() -> None:
    seen = _seen()

    message = (
        "spec.size was reverted 3 times since 2026-01-01T00:00:02Z, and another writer sets it to 9 again and again"
    )
    waits = "spec.size: changed after each revert, and not reverted again before 2026-01-01T00:01:04Z"
    assert "Ready False (Contested)" in seen["describe"]
    assert f"Contested {message}" in seen["describe"]
    assert waits in seen["wide"]
    assert message in seen["wide"]
    assert "withheld: spec.size: 9 → 1 (spec)" in seen["explain"]
    assert waits in seen["plan"]
    assert "! spec.size 9 → 1" in seen["plan"]


def test_no_view_says_that_all_is_well_after_a_revert_of_an_oscillating_field() -> None:
    seen = _seen(drifts=3)

    message = "spec.size was reverted 3 times since 2026-01-01T00:00:02Z"
    assert f"now: Contested, {message}" in seen["explain"]
    assert seen["explain"].partition(" next step")[0].endswith("(Ready is True: UpToDate)")
    assert f"Contested {message}" in seen["describe"]
    assert "True Contested" in seen["wide"]
    assert message in seen["wide"]
    assert [name for name in ("describe", "wide", "explain") if "is up to date" in seen[name]] == []
