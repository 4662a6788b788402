"""The metrics page: its format, its documentation, and what runs while it is rendered."""

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families as plain_text

from setpoint.runtime.metrics import readings
from setpoint.runtime.metrics.catalogue import CATALOGUE
from setpoint.runtime.metrics.telemetry import LINES_PER_SLICE, Telemetry

ROW = re.compile(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)


@pytest.mark.parametrize("accept", ["", "text/plain", "application/openmetrics-text;version=x", "no such thing"])
def test_the_default_format_is_plain_text(accept: str) -> None:
    body, content_type = asyncio.run(Telemetry().page(accept))

    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    families = plain_text(body.decode())
    assert {family.name for family in families} >= {"workqueue_depth", "setpoint_decisions", "python_info"}


def test_a_metric_with_many_series_has_one_heading() -> None:
    telemetry = Telemetry()
    kinds = [f"Kind{number:03}" for number in range(250)]
    for kind in kinds:
        telemetry.step_finished(kind, "settled", "in sync", 0.1)

    body, _ = asyncio.run(telemetry.page())
    lines = body.decode().splitlines()

    named = [line for line in lines if "controller_runtime_reconcile_errors_total" in line]
    assert [line.split()[1] for line in named if line.startswith("#")] == ["HELP", "TYPE"]
    assert len(named) == 2 + 250


def test_other_tasks_run_while_a_long_page_is_rendered() -> None:
    async def main() -> tuple[int, int]:
        telemetry, turns = Telemetry(), 0
        for number in range(50):
            telemetry.step_finished(f"Kind{number:03}", "settled", "in sync", 0.1)
        page = asyncio.create_task(telemetry.page())
        while not page.done():
            turns += 1
            await asyncio.sleep(0)
        body, _ = await page
        return turns, body.count(b"\n")

    turns, lines = asyncio.run(main())

    assert turns >= lines / LINES_PER_SLICE


def test_steps_that_finish_while_the_page_is_read_are_on_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tasks run after each reading.
    monkeypatch.setattr(readings, "READINGS_PER_SLICE", 1)
    telemetry = Telemetry()

    async def read_and_step() -> None:
        telemetry.step_finished("First", "settled", "in-sync", 0.1)
        page = asyncio.create_task(telemetry.page())
        # As many as there are turns: one of them is between two readings.
        for number in range(20):
            await asyncio.sleep(0)
            telemetry.step_finished(f"Kind{number}", "settled", "in-sync", 0.1)
        await page

    asyncio.run(read_and_step())

    body, _ = asyncio.run(telemetry.page())
    counted = re.findall(r"^controller_runtime_reconcile_total{.*} (\S+)$", body.decode(), re.MULTILINE)
    assert sum(map(float, counted)) == 21


def test_the_global_registry_is_not_used() -> None:
    telemetry = Telemetry()
    telemetry.step_finished("Gadget", "settled", "in sync", 0.1)

    assert [family.name for family in REGISTRY.collect() if family.name.startswith("setpoint")] == []


def _documented() -> dict[str, tuple[str, list[str]]]:
    rows = ROW.findall(Path("docs/metrics.md").read_text(encoding="utf-8"))
    return {name: (metric_type, re.findall(r"`(\w+)`", labels)) for name, metric_type, labels in rows}


def test_the_docs_list_each_metric_with_its_type_and_labels() -> None:
    ours = {metric.name: (metric.type.value, list(metric.labels)) for metric in CATALOGUE}
    process_metrics = ("process_", "python_")

    found = {name: row for name, row in _documented().items() if not name.startswith(process_metrics)}

    assert found == ours


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="where there is no /proc, less is known of a process")
def test_the_docs_list_every_metric_of_the_page_and_no_other() -> None:
    body, _ = asyncio.run(Telemetry().page())

    assert sorted(re.findall(r"^# TYPE (\w+) ", body.decode(), re.MULTILINE)) == sorted(_documented())
