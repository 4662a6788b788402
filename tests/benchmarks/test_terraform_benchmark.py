"""The benchmark with the real Terraform runs, and every plan in it has to be without changes."""

import json
import os
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks import terraform, terraform_noop_provider
from benchmarks.__main__ import main
from tests.cluster.access import Access

CPU = "terraform plan of one object, nothing to do: CPU time of all processes"
PROVIDER_CPU = "terraform plan of one object, nothing to do: CPU time of the provider's processes"
WALL = "terraform plan of one object, nothing to do: by the clock"
WALL_OF_MANY = "terraform plan of 50 objects, nothing to do: by the clock"
BEFORE = "ours, of the checkout in SETPOINT_BENCH_BEFORE"
OURS = "ours: setpoint_object, on an API server"
NOOP = "a provider of the same framework that does nothing"
WITHOUT_CLUSTER = (NOOP, "Terraform alone: terraform_data")

ROOT = Path(__file__).parents[2]
needs_terraform = pytest.mark.skipif(
    shutil.which(os.environ.get("SETPOINT_TERRAFORM") or "terraform") is None,
    reason="terraform is not on the PATH: nothing was measured with the real Terraform",
)


def bench(**environment: str) -> Result:
    command = ["--quick", "--alone", "-o", "json", "terraform"]
    return CliRunner(env=environment).invoke(main, command, catch_exceptions=False)


@needs_terraform
def test_compares_a_plan_of_ours_with_the_noop_provider_and_terraform_alone(
    api_server: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terraform, "api_server", lambda _assets, _folder: nullcontext(api_server))

    report = json.loads(bench(SETPOINT_BENCH_BEFORE=str(ROOT)).stdout)

    measurements = [(entry["subject"], entry["name"]) for entry in report["readings"]]
    assert measurements == [
        *((CPU, name) for name in (OURS, BEFORE, *WITHOUT_CLUSTER)),
        *((PROVIDER_CPU, name) for name in (OURS, BEFORE, NOOP)),
        *((WALL, name) for name in (OURS, BEFORE, *WITHOUT_CLUSTER)),
        *((WALL_OF_MANY, name) for name in ("ours: 50 of them", "ours, of that checkout: 50 of them")),
    ]
    assert min(entry["value"] for entry in report["readings"]) > 0


@needs_terraform
def test_plans_that_need_no_cluster_are_measured_without_one() -> None:
    result = bench(KUBEBUILDER_ASSETS="nowhere")

    report = json.loads(result.stdout)
    measurements = [(entry["subject"], entry["name"]) for entry in report["readings"]]
    assert measurements == [
        *((CPU, name) for name in WITHOUT_CLUSTER),
        (PROVIDER_CPU, NOOP),
        *((WALL, name) for name in WITHOUT_CLUSTER),
    ]
    assert [entry["subject"] for entry in report["unmeasured"]] == [
        f"terraform plan of one object, nothing to do: {OURS}"
    ]
    assert result.exit_code == 1


def test_reports_that_terraform_is_missing() -> None:
    report = json.loads(bench(SETPOINT_TERRAFORM="terraform-missing").stdout)

    assert report["unmeasured"] == [
        {"subject": "terraform plan of one object, nothing to do", "reason": "terraform is not on the PATH"}
    ]


def test_the_noop_provider_has_one_resource() -> None:
    assert list(terraform_noop_provider.NoopProvider().resources) == ["noop_object"]
