"""The benchmark with the real Terraform runs, and every plan in it has to find nothing to do."""

import json
import os
import shutil
from contextlib import nullcontext

import pytest
from click.testing import CliRunner, Result

from benchmarks import terraform, terraform_noop
from benchmarks.__main__ import main
from tests.cluster.access import Access

CPU = "terraform plan of one object, nothing to do: CPU time of all processes"
WALL = "terraform plan of one object, nothing to do: by the clock"
OURS = "ours: setpoint_object, on an API server"
OTHERS = ("a provider of the same framework that does nothing", "Terraform alone: terraform_data")

needs_terraform = pytest.mark.skipif(
    shutil.which(os.environ.get("SETPOINT_TERRAFORM") or "terraform") is None,
    reason="terraform is not on the PATH: nothing was measured with the real Terraform",
)


def bench(**environment: str) -> Result:
    command = ["--quick", "--alone", "-o", "json", "terraform"]
    return CliRunner(env=environment).invoke(main, command, catch_exceptions=False)


@needs_terraform
def test_a_plan_of_ours_stands_beside_one_of_nothing(api_server: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terraform, "api_server", lambda _assets, _folder: nullcontext(api_server))

    report = json.loads(bench().stdout)

    readings = [(one["subject"], one["name"]) for one in report["readings"]]
    assert readings == [(subject, name) for subject in (CPU, WALL) for name in (OURS, *OTHERS)]


@needs_terraform
def test_what_needs_no_cluster_is_measured_without_one() -> None:
    result = bench(KUBEBUILDER_ASSETS="nowhere")

    report = json.loads(result.stdout)
    readings = [(one["subject"], one["name"]) for one in report["readings"]]
    assert readings == [(subject, name) for subject in (CPU, WALL) for name in OTHERS]
    assert [one["subject"] for one in report["unmeasured"]] == [f"terraform plan of one object, nothing to do: {OURS}"]
    assert result.exit_code == 1


def test_where_there_is_no_terraform_that_is_said() -> None:
    report = json.loads(bench(SETPOINT_TERRAFORM="terraform-of-nobody").stdout)

    assert report["unmeasured"] == [
        {"subject": "terraform plan of one object, nothing to do", "reason": "terraform is not on the PATH"}
    ]


def test_the_provider_that_does_nothing_has_one_resource() -> None:
    assert list(terraform_noop.NoProvider().resources) == ["noop_object"]
