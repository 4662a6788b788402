"""The Grafana dashboard: its form, and each of its queries on a real Prometheus that scrapes a real process."""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from setpoint.runtime.metrics.catalogue import DEFINITIONS
from tests.cli.workspace import Workspace, bucket, user_environment
from tests.cluster.polling import until
from tests.deployment.monitoring.prometheus_server import PrometheusServer, running_prometheus
from tests.editor.node_packages import installed

FILE: Final = Path("deploy/grafana/setpoint.json")
RULES: Final = Path("deploy/prometheus/rules.yaml").absolute()
# What has no series here: no set has a source, and a store in a file has neither shards nor leases.
EMPTY: Final = {"Sources of sets", "Shards", "Lease renewals that failed"}
PROCESS: Final = {"process_cpu_seconds_total", "process_resident_memory_bytes"}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def targets() -> list[tuple[str, str]]:
    """The panels with a query each."""
    return [(panel["title"], one["expr"]) for panel in dashboard()["panels"] for one in panel.get("targets", ())]


def metrics_in(expression: str) -> set[str]:
    """The names of metrics in an expression, without the suffixes of the series of a histogram."""
    names = re.findall(r"\b(?:setpoint|workqueue|controller_runtime|rest_client|process)_\w+", expression)
    return {name.removesuffix("_bucket") for name in names}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("monitored")


@pytest.fixture
def server(promtool: str, folder: Path) -> Iterator[PrometheusServer]:
    """A Prometheus with what a process served that created, corrected and waits."""
    with Workspace(folder, user_environment()) as workspace:
        daemon = workspace.daemon("--metrics", "127.0.0.1:0", "--kinds", "StorageBucket")
        address = re.findall(r'"address":"http://(127[^"]+)"', daemon.text)[0]
        with running_prometheus(folder, address, RULES) as prometheus:
            until(lambda: bool(prometheus.query('up{job="setpoint"} == 1')))
            workspace.write(bucket("logs"), bucket("photos"))
            assert workspace.run("apply", "-f", "manifest.yaml").returncode == 0
            until(lambda: bool(prometheus.query('sum(setpoint_resources{ready="true"}) == 2')))
            until(lambda: bool(prometheus.query("sum(rate(setpoint_convergence_seconds_count[5m])) > 0")))
            # Series that begin with the first request have to be scraped twice.
            for name in ("setpoint_api_calls_total", "rest_client_requests_total"):
                until(partial(_has_rate, prometheus, name))
            yield prometheus


def _has_rate(prometheus: PrometheusServer, name: str) -> bool:
    return bool(prometheus.query(f"rate({name}[5m])"))


def test_every_query_has_data_and_every_alert_is_loaded(server: PrometheusServer) -> None:
    empty = set()
    for title, expression in targets():
        asked = expression.replace("$__rate_interval", "5m").replace("$job", ".*").replace("$kind", ".*")
        assert "$" not in asked
        if not server.query(asked):
            empty.add(title)
    assert empty == EMPTY

    names = set(server.get("label/__name__/values"))
    used = {name for _, expression in targets() for name in metrics_in(expression)}
    assert {one for one in used if one not in names and f"{one}_bucket" not in names} == {
        *("setpoint_source_last_good_timestamp_seconds", "setpoint_shards", "setpoint_shards_held"),
        "setpoint_lease_renewal_failures_total",
    }
    (group,) = server.get("rules")["groups"]
    assert [rule["health"] for rule in group["rules"]] == ["ok"] * len(group["rules"])


def test_every_metric_of_the_dashboard_is_in_the_catalogue() -> None:
    used = {name for _, expression in targets() for name in metrics_in(expression)}

    assert used <= {*DEFINITIONS, *PROCESS}


def test_every_variable_asks_for_a_metric_and_a_label_that_exist() -> None:
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            name, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", variable["query"]["query"]).groups()  # type: ignore[union-attr]
            assert label == "job" or label in DEFINITIONS[name].labels


# Enumerations in Grafana's types are those of TypeScript, which no literal is of: they stand for their values.
_TYPED: Final = """import type {{ Dashboard }} from "@grafana/schema";
type Plain<T> = T extends string ? `${{T}}` : T extends number | boolean | null | undefined ? T
  : T extends (infer E)[] ? Plain<E>[] : T extends object ? {{ [K in keyof T]: Plain<T[K]> }} : T;
export const dashboard: Plain<Dashboard> = {dashboard};
"""


def _problems_of(found: object, folder: Path) -> str:
    """What Grafana's own types say of a dashboard: fields that it does not have, and values of another type."""
    packages = installed(Path(__file__).parent / "grafana") / "node_modules"
    (folder / "node_modules").symlink_to(packages)
    (folder / "dashboard.ts").write_text(_TYPED.format(dashboard=json.dumps(found, indent=1)), encoding="utf-8")
    options = ("--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler")
    command = ["node", str(packages / "typescript/bin/tsc"), *options, "--target", "es2022", "dashboard.ts"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_the_dashboard_is_of_the_types_of_grafana(tmp_path: Path) -> None:
    assert _problems_of(dashboard(), tmp_path) == ""


def test_a_field_that_grafana_does_not_have_is_found(tmp_path: Path) -> None:
    assert "'\"panelz\"' does not exist" in _problems_of({**dashboard(), "panelz": []}, tmp_path)


def test_the_dashboard_has_the_form_that_grafana_imports() -> None:
    found = dashboard()

    assert {"uid", "title", "panels", "templating", "time", "schemaVersion", "refresh"} <= {*found}
    assert found["id"] is None, "an id of one installation clashes in another"
    panels = found["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    assert len({one["title"] for one in panels}) == len(panels)
    assert {one["type"] for one in panels} <= {"row", "timeseries", "stat"}
    for one in panels:
        place = one["gridPos"]
        assert place["x"] + place["w"] <= 24
        if one["type"] != "row":
            assert one["description"].endswith(".")
            assert {target["datasource"]["uid"] for target in one["targets"]} == {"${datasource}"}
    taken = [
        (place["x"] + dx, place["y"] + dy)
        for one in panels
        for place in [one["gridPos"]]
        for dx in range(place["w"])
        for dy in range(place["h"])
    ]
    assert len(taken) == len({*taken}), "two panels overlap"
