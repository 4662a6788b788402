"""`setpoint doctor` on a real API server: who we are, what we may not do, and current definitions."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket
from tests.forking.processes import SETPOINT, Start, run

SECONDS = 240.0
CHECKS = ("--only", "credentials,rights,crds,versions,store")


def findings(done: "subprocess.CompletedProcess[str]", level: str) -> list[str]:
    """What was found at this level."""
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return [one["what"] for one in found if one["level"] == level]


def test_an_administrator_has_every_right_and_every_definition(harness: ControllerHarness) -> None:
    done = harness.setpoint("doctor", *CHECKS, "-o", "json")

    said = findings(done, "ok")
    assert (done.returncode, findings(done, "error"), findings(done, "warning")) == (0, [], [])
    assert "the API server takes us for admin" in said
    assert any(one.startswith("all ") and "rights that the controller needs" in one for one in said)
    assert any(one.startswith("all ") and "definitions are those of this version" in one for one in said)
    assert any(one.startswith("API server v1.") for one in said)


def test_a_right_that_is_missing_is_named_with_what_to_do(harness: ControllerHarness) -> None:
    kubectl = harness.kubectl
    rules = [
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["list"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch", "create", "update", "impersonate"]},
    ]
    name = f"doctor-{kubectl.namespace}"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(role))
    kubectl(
        "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={kubectl.namespace}:default"
    )
    account = f"system:serviceaccount:{kubectl.namespace}:default"
    try:
        done = harness.setpoint("doctor", "--only", "rights,credentials", "--as", account, "-o", "json")
    finally:
        kubectl("delete", "clusterrolebinding", name)
        kubectl("delete", "clusterrole", name)

    errors = findings(done, "error")
    assert done.returncode == 1
    assert f"the API server takes us for {account}" in findings(done, "ok")
    assert f"may not patch storagebuckets.storage.cnrm.cloud.google.com in {kubectl.namespace}" in errors
    assert f"may not patch storagebuckets/status.storage.cnrm.cloud.google.com in {kubectl.namespace}" in errors
    assert f"may not patch events in {kubectl.namespace}" in errors
    assert not any("list" in one for one in errors)


def test_a_user_whose_token_is_refused_is_told_so(harness: ControllerHarness, tmp_path: Path) -> None:
    access, expired = harness.kubectl.access, tmp_path / "expired.kubeconfig"
    text = access.kubeconfig_of("alice").read_text(encoding="utf-8")
    expired.write_text(text.replace(access.token_of("alice"), "expired-token"), encoding="utf-8")
    environment = harness.environment(harness.cloud.url) | {"KUBECONFIG": str(expired)}
    arguments = ("doctor", "--only", "credentials", "-o", "json")

    done = run(Start((SETPOINT, *arguments), harness.folder, environment), SECONDS)

    assert done.returncode == 1
    assert "renew the credentials of this context" in done.stdout
    assert "expired-token" not in done.stdout + done.stderr


def test_a_controller_that_runs_is_seen_by_its_lease(harness: ControllerHarness) -> None:
    before = harness.setpoint("doctor", "--only", "process", "-o", "json")
    harness.start_controller()
    harness.kubectl.apply(bucket("logs"))
    harness.kubectl.until_ready("storagebucket/logs")

    done = harness.setpoint("doctor", "-o", "json")

    assert findings(before, "warning") == ["no controller renews a lease: nothing is reconciled"]
    assert findings(done, "error") == []
    assert "a controller renews its lease" in findings(done, "ok")
    assert "StorageBucket can be read" in findings(done, "ok")
