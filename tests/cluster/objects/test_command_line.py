"""Commands for KubernetesObjects, with a SQLite store and a real API server."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.programs import DEADLINE
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import Tree, config_map, deployment
from tests.forking.processes import SETPOINT, Start
from tests.forking.processes import run as run_to_its_end

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def setpoint(api_server: Access, tmp_path: Path) -> Run:
    """Runs `setpoint` in a folder of its own, and asserts its exit code."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    own = {"HOME": str(tmp_path), "KUBECONFIG": str(api_server.kubeconfig), "SETPOINT_GCP_AUTH": "anonymous"}
    environment = {**kept, **own, "PYTHONUTF8": "1"}

    def run(*arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = run_to_its_end(Start((SETPOINT, *arguments), tmp_path, environment), DEADLINE)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def kubernetes_object(namespace: str, name: str, manifest: Tree | str, **spec: Any) -> Tree:
    return {
        "apiVersion": "setpoint.dev/v1alpha1",
        "kind": "KubernetesObject",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"manifest": manifest, **spec},
    }


def write(folder: Path, *documents: Tree) -> str:
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    return str(file)


def test_plan_apply_and_delete_of_an_object(setpoint: Run, api_server: Access, namespace: str, tmp_path: Path) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/map"
    file = write(tmp_path, kubernetes_object(namespace, "one", config_map(a="1")))

    planned = setpoint("plan", "-f", file, code=2).stdout
    assert "data.a" in planned
    assert api_server.call("GET", path).status == 404
    assert "created" in setpoint("apply", "-f", file).stdout
    assert api_server.call("GET", path).body["data"] == {"a": "1"}
    setpoint("plan", "-f", file)
    assert "unchanged" in setpoint("apply", "-f", file).stdout
    shown = json.loads(setpoint("get", "KubernetesObject/one", "-n", namespace, "-o", "json").stdout)
    assert shown["status"]["object"]["name"] == "map"
    assert shown["status"]["output"] == {"state": "null"}

    api_server.call("PATCH", path, {"data": {"a": "by hand"}})
    assert '"by hand"' in setpoint("plan", "-f", file, code=2).stdout
    setpoint("apply", "-f", file)
    assert api_server.call("GET", path).body["data"] == {"a": "1"}
    assert "deleted" in setpoint("delete", "-f", file).stdout
    assert api_server.call("GET", path).status == 404


def test_one_apply_creates_a_definition_a_namespace_and_their_objects(
    setpoint: Run, api_server: Access, namespace: str, tmp_path: Path
) -> None:
    group, inner = f"{namespace}.example.com", f"{namespace}-in"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }
    widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": inner}}
    file = write(
        tmp_path,
        kubernetes_object(namespace, "a-widget", widget),
        kubernetes_object(namespace, "definition", definition),
        kubernetes_object(namespace, "space", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}}),
    )

    assert "waits for its kind" in setpoint("plan", "-f", file, code=2).stdout
    assert setpoint("apply", "-f", file).stdout.count("created") >= 3
    setpoint("plan", "-f", file)

    assert api_server.call("GET", f"/apis/{group}/v1/namespaces/{inner}/widgets/w").status == 200
    if api_server.has_controllers:
        setpoint("delete", "-f", file)
    else:
        setpoint("delete", "KubernetesObject/definition", "-n", namespace)


def test_a_wait_that_times_out_exits_3_and_names_the_object(
    setpoint: Run, api_server: Access, namespace: str, tmp_path: Path
) -> None:
    rollout = {"rollout": True, "timeout": "1s"}
    file = write(tmp_path, kubernetes_object(namespace, "web", deployment(), waitFor=rollout))

    printed = setpoint("apply", "-f", file, code=3).stdout

    assert "timed out" in printed
    assert "Deployment" in printed
    assert api_server.call("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/web").status == 200


def test_an_invalid_manifest_is_refused_with_its_path(setpoint: Run, namespace: str, tmp_path: Path) -> None:
    wrong = config_map(a="1")
    wrong["metadata"]["uid"] = "mine"
    file = write(tmp_path, kubernetes_object(namespace, "one", wrong))

    printed = setpoint("apply", "-f", file, code=1)

    assert "spec.manifest: only the cluster sets metadata.uid: leave it out" in printed.stdout + printed.stderr


def test_a_conflict_fails_the_command_and_names_the_field_manager(
    setpoint: Run, api_server: Access, namespace: str, tmp_path: Path
) -> None:
    api_server.call("POST", f"/api/v1/namespaces/{namespace}/configmaps?fieldManager=helm", config_map(a="theirs"))
    file = write(tmp_path, kubernetes_object(namespace, "one", config_map(a="1")))

    printed = setpoint("apply", "-f", file, code=1)

    assert "data.a is held by helm" in printed.stdout + printed.stderr


def test_no_command_shows_the_values_of_a_secret(
    setpoint: Run, api_server: Access, namespace: str, tmp_path: Path
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"p": "hunter2"}}
    file = write(tmp_path, kubernetes_object(namespace, "keys", secret))

    printed = setpoint("plan", "-f", file, code=2).stdout
    printed += setpoint("apply", "-f", file).stdout
    printed += setpoint("explain", "KubernetesObject/keys", "-n", namespace).stdout
    printed += setpoint("events", "-n", namespace).stdout

    assert "data.p" in printed
    assert "hunter2" not in printed
    assert "aHVudGVyMg==" not in printed
    path = f"/api/v1/namespaces/{namespace}/secrets/keys"
    assert api_server.call("GET", path).body["data"] == {"p": "aHVudGVyMg=="}


def test_a_kubeconfig_in_the_same_file_is_used_by_plan_and_apply(
    setpoint: Run, api_server: Access, namespace: str, tmp_path: Path
) -> None:
    text = api_server.kubeconfig.read_text(encoding="utf-8")
    metadata = {"name": "access", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"config": text}}
    cluster = {"kubeconfig": {"valueFrom": {"secretKeyRef": {"name": "access", "key": "config"}}}}
    file = write(tmp_path, secret, kubernetes_object(namespace, "one", config_map(a="1"), cluster=cluster))

    assert "data.a" in setpoint("plan", "-f", file, code=2).stdout
    assert "created" in setpoint("apply", "-f", file).stdout
    setpoint("plan", "-f", file)
    setpoint("delete", "KubernetesObject/one", "-n", namespace)

    assert api_server.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/map").status == 404


def test_an_unreachable_cluster_fails_the_plan_and_is_retried_by_apply(
    setpoint: Run, namespace: str, tmp_path: Path
) -> None:
    unreachable = {"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}
    config = {
        "contexts": [{"name": "x", "context": {"cluster": "x"}}],
        "clusters": [unreachable],
        "current-context": "x",
    }
    metadata = {"name": "access", "namespace": namespace}
    data = {"config": yaml.safe_dump(config)}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}
    cluster = {"kubeconfig": {"valueFrom": {"secretKeyRef": {"name": "access", "key": "config"}}}}
    file = write(tmp_path, secret, kubernetes_object(namespace, "one", config_map(a="1"), cluster=cluster))

    assert "failed: GET /api/v1" in setpoint("plan", "-f", file, code=1).stdout
    assert "retrying: GET /api/v1" in setpoint("apply", "-f", file, "--timeout", "2s", code=3).stdout


def test_a_protected_object_is_not_even_marked_for_deletion(setpoint: Run, namespace: str, tmp_path: Path) -> None:
    setpoint(
        "apply", "-f", write(tmp_path, kubernetes_object(namespace, "one", config_map(a="1"), deleteProtection=True))
    )

    refused = setpoint("delete", "KubernetesObject/one", "-n", namespace, code=1).stderr
    still = json.loads(setpoint("get", "KubernetesObject/one", "-n", namespace, "-o", "json").stdout)
    setpoint(
        "apply", "-f", write(tmp_path, kubernetes_object(namespace, "one", config_map(a="1"), deleteProtection=False))
    )
    deleted = setpoint("delete", "KubernetesObject/one", "-n", namespace).stdout

    assert "is protected by spec.deleteProtection: set that to false and apply it first" in refused
    assert "deletionTimestamp" not in still["metadata"]
    first, summary = deleted.splitlines()
    assert first.startswith(f"KubernetesObject {namespace}/one deleted: v1 ConfigMap {namespace}/")
    assert summary == "deleted 1"
