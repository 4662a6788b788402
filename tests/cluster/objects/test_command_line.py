"""Objects by the command line, with a store in a file and a real API server."""

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
    """The real command, in a folder of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    own = {"HOME": str(tmp_path), "KUBECONFIG": str(api_server.kubeconfig), "SETPOINT_GCP_AUTH": "anonymous"}
    environment = {**kept, **own, "PYTHONUTF8": "1"}

    def run(*arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = run_to_its_end(Start((SETPOINT, *arguments), tmp_path, environment), DEADLINE)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def keep(namespace: str, name: str, manifest: Tree | str, **spec: Any) -> Tree:
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


def test_an_object_from_its_plan_to_its_end(setpoint: Run, api_server: Access, namespace: str, tmp_path: Path) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/map"
    file = write(tmp_path, keep(namespace, "one", config_map(a="1")))

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


def test_a_definition_its_objects_a_namespace_and_what_is_in_it_in_one_apply(
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
        keep(namespace, "a-widget", widget),
        keep(namespace, "definition", definition),
        keep(namespace, "space", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}}),
    )

    assert "waits for its kind" in setpoint("plan", "-f", file, code=2).stdout
    assert setpoint("apply", "-f", file).stdout.count("created") >= 3
    setpoint("plan", "-f", file)

    assert api_server.call("GET", f"/apis/{group}/v1/namespaces/{inner}/widgets/w").status == 200
    if api_server.has_controllers:
        setpoint("delete", "-f", file)
    else:
        setpoint("delete", "KubernetesObject/definition", "-n", namespace)


def test_a_wait_that_is_not_over_says_what_is_missing(
    setpoint: Run, api_server: Access, namespace: str, tmp_path: Path
) -> None:
    rollout = {"rollout": True, "timeout": "1s"}
    file = write(tmp_path, keep(namespace, "web", deployment(), waitFor=rollout))

    told = setpoint("apply", "-f", file, code=3).stdout

    assert "timed out" in told
    assert "Deployment" in told
    assert api_server.call("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/web").status == 200


def test_a_wrong_manifest_is_refused_with_its_place(setpoint: Run, namespace: str, tmp_path: Path) -> None:
    wrong = config_map(a="1")
    wrong["metadata"]["uid"] = "mine"
    file = write(tmp_path, keep(namespace, "one", wrong))

    told = setpoint("apply", "-f", file, code=1)

    assert "spec.manifest: only the cluster sets metadata.uid: leave it out" in told.stdout + told.stderr


def test_a_conflict_fails_the_command_and_names_the_holder(
    setpoint: Run, api_server: Access, namespace: str, tmp_path: Path
) -> None:
    api_server.call("POST", f"/api/v1/namespaces/{namespace}/configmaps?fieldManager=helm", config_map(a="theirs"))
    file = write(tmp_path, keep(namespace, "one", config_map(a="1")))

    told = setpoint("apply", "-f", file, code=1)

    assert "data.a is held by helm" in told.stdout + told.stderr


def test_a_secret_shows_its_values_nowhere(setpoint: Run, api_server: Access, namespace: str, tmp_path: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"p": "hunter2"}}
    file = write(tmp_path, keep(namespace, "keys", secret))

    told = setpoint("plan", "-f", file, code=2).stdout
    told += setpoint("apply", "-f", file).stdout
    told += setpoint("explain", "KubernetesObject/keys", "-n", namespace).stdout
    told += setpoint("events", "-n", namespace).stdout

    assert "data.p" in told
    assert "hunter2" not in told
    assert "aHVudGVyMg==" not in told
    path = f"/api/v1/namespaces/{namespace}/secrets/keys"
    assert api_server.call("GET", path).body["data"] == {"p": "aHVudGVyMg=="}


def test_a_cluster_whose_kubeconfig_comes_along_is_planned_and_applied_at_once(
    setpoint: Run, api_server: Access, namespace: str, tmp_path: Path
) -> None:
    text = api_server.kubeconfig.read_text(encoding="utf-8")
    metadata = {"name": "access", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"config": text}}
    cluster = {"kubeconfig": {"valueFrom": {"secretKeyRef": {"name": "access", "key": "config"}}}}
    file = write(tmp_path, secret, keep(namespace, "one", config_map(a="1"), cluster=cluster))

    assert "data.a" in setpoint("plan", "-f", file, code=2).stdout
    assert "created" in setpoint("apply", "-f", file).stdout
    setpoint("plan", "-f", file)
    setpoint("delete", "KubernetesObject/one", "-n", namespace)

    assert api_server.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/map").status == 404


def test_a_cluster_that_does_not_answer_makes_no_plan(setpoint: Run, namespace: str, tmp_path: Path) -> None:
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
    file = write(tmp_path, secret, keep(namespace, "one", config_map(a="1"), cluster=cluster))

    assert "failed: GET /api/v1" in setpoint("plan", "-f", file, code=1).stdout
    assert "retrying: GET /api/v1" in setpoint("apply", "-f", file, "--timeout", "2s", code=3).stdout


def test_a_protected_object_is_not_even_marked_for_deletion(setpoint: Run, namespace: str, tmp_path: Path) -> None:
    setpoint("apply", "-f", write(tmp_path, keep(namespace, "one", config_map(a="1"), deleteProtection=True)))

    refused = setpoint("delete", "KubernetesObject/one", "-n", namespace, code=1).stderr
    still = json.loads(setpoint("get", "KubernetesObject/one", "-n", namespace, "-o", "json").stdout)
    setpoint("apply", "-f", write(tmp_path, keep(namespace, "one", config_map(a="1"), deleteProtection=False)))
    deleted = setpoint("delete", "KubernetesObject/one", "-n", namespace).stdout

    assert "is protected by spec.deleteProtection: set that to false and apply it first" in refused
    assert "deletionTimestamp" not in still["metadata"]
    assert deleted == f"KubernetesObject {namespace}/one deleted\n"
