"""Which namespace a command is about."""

import json
from pathlib import Path

import pytest
import yaml

from setpoint.app import AppSettings, default_namespace
from tests.cli.workspace import Workspace

BUCKET = """\
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata: {name: NAME}
spec: {location: EU}
"""


@pytest.mark.parametrize(
    ("store", "namespace"),
    [
        ("kubernetes", "default"),
        ("kubernetes://there", "default"),
        ("kubernetes?namespace=shop", "shop"),
        ("kubernetes://there?namespace=shop", "shop"),
        ("sqlite:///a?namespace=shop", "default"),
    ],
)
def test_the_address_of_a_store_may_have_the_namespace_of_commands(store: str, namespace: str) -> None:
    assert default_namespace(AppSettings(store)) == namespace


def test_a_manifest_without_a_namespace_is_in_that_of_the_command(workspace: Workspace) -> None:
    workspace.write(BUCKET.replace("NAME", "logs"))

    assert "StorageBucket shop/logs" in workspace.run("plan", "-f", "manifest.yaml", "-n", "shop").stdout
    assert "StorageBucket shop/logs created" in workspace.run("apply", "-f", "manifest.yaml", "-n", "shop").stdout
    assert workspace.run("get", "StorageBucket/logs").returncode == 1
    assert workspace.run("get", "StorageBucket/logs", "-n", "shop").returncode == 0
    assert "StorageBucket shop/logs deleted" in workspace.run("delete", "-f", "manifest.yaml", "-n", "shop").stdout


def test_a_namespace_in_a_manifest_stands(workspace: Workspace) -> None:
    workspace.write(BUCKET.replace("{name: NAME}", "{name: logs, namespace: own}"))

    assert "StorageBucket own/logs created" in workspace.run("apply", "-f", "manifest.yaml", "-n", "shop").stdout


def test_events_are_those_of_one_namespace(workspace: Workspace) -> None:
    for name, namespace in (("first-logs", "default"), ("second-logs", "shop")):
        workspace.write(BUCKET.replace("NAME", name))
        workspace.run("apply", "-f", "manifest.yaml", "-n", namespace)

    def named(*options: str) -> set[str]:
        return {one["resource"]["name"] for one in json.loads(workspace.run("events", "-o", "json", *options).stdout)}

    assert named() == {"first-logs"}
    assert named("-n", "shop") == {"second-logs"}
    assert named("-A") == {"first-logs", "second-logs"}


def test_chart_and_docs_agree_on_the_oldest_kubernetes() -> None:
    chart = yaml.safe_load(Path("deploy/helm/setpoint/Chart.yaml").read_text(encoding="utf-8"))

    assert chart["kubeVersion"] == ">=1.29.0-0"
    for page in ("how-to/run-on-kubernetes.md", "custom-resources.md"):
        assert "1.29 or newer" in Path("docs", page).read_text(encoding="utf-8")
