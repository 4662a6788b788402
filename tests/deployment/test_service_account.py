"""The program as a pod runs it, on a real API server: the rights of its account, its command line, its environment."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import pod_spec
from tests.cluster.fixtures import NewApiServer
from tests.cluster.ports import free_port
from tests.cluster.server import Settings
from tests.deployment.audit_log import arguments, requests_of
from tests.deployment.conftest import Kubectl
from tests.deployment.eventually import once
from tests.deployment.file_audit import WATCHED
from tests.deployment.installed_objects import process, types
from tests.localcloud.process import cloud_process

ACCOUNT = "system:serviceaccount:setpoint-system:setpoint"
BUCKET = """
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: logs
  annotations: {cnrm.cloud.google.com/project-id: demo}
spec: {location: EU}
"""
USER = """
apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLUser
metadata:
  name: app
  annotations: {cnrm.cloud.google.com/project-id: demo}
spec:
  instanceRef: {external: shop}
  password: {valueFrom: {secretKeyRef: {name: shop-app, key: password}}}
"""

TRUSTEE = """
apiVersion: confidentialcontainers.org/v1alpha1
kind: TrusteeConfig
metadata: {name: trustee}
spec: {profileType: Permissive}
"""


@contextmanager
def _pod(kubectl: Kubectl, folder: Path, cloud: str, installation: Installation) -> Iterator[str]:
    """The container of a pod as a process here; its address. What it says is in `pod.log`."""
    (container,) = _list(pod_spec(installation)["containers"])
    port = free_port()
    told = {"POD_NAME": "setpoint-0", "POD_NAMESPACE": installation.namespace}
    environment = {one["name"]: told.get(one["name"]) or one["value"] for one in container["env"]}
    command = [
        one.replace("$(POD_NAME)", "setpoint-0").replace(":8080", f"127.0.0.1:{port}") for one in container["args"]
    ]
    surroundings = {
        "KUBECONFIG": str(_kubeconfig(kubectl, folder, installation.namespace)),
        "STORAGE_EMULATOR_HOST": cloud,
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{cloud}/",
        "SETPOINT_GCP_AUTH": "anonymous",
        # As the image has it.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with (
        (folder / "pod.log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", WATCHED, *command], env={**environment, **surroundings}, stderr=log, cwd=os.sep
        ) as process,
    ):
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            assert process.wait(60) == 0, (folder / "pod.log").read_text(encoding="utf-8")


def _kubeconfig(kubectl: Kubectl, folder: Path, namespace: str) -> Path:
    """A kubeconfig with the token of the account."""
    assert kubectl.access is not None
    config: Any = yaml.safe_load(kubectl.access.kubeconfig.read_text(encoding="utf-8"))
    token = kubectl("create", "token", "setpoint", "--namespace", namespace).strip()
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    file = folder / "pod.kubeconfig"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


def _list(value: Any) -> list[Any]:
    assert isinstance(value, list)
    return value


def _ready(kubectl: Kubectl, *name: str) -> str:
    return kubectl("get", *name, "--ignore-not-found", "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")


def _status(url: str) -> int:
    try:
        with urlopen(url) as answer:
            return int(answer.status)
    except OSError:
        return 0


# This scenario is short: no other writer interferes, and nothing is retried.
SELDOM = {("storage.cnrm.cloud.google.com", "storagebuckets", "get"), ("", "events", "patch")}
RIGHTS = {
    *(("storage.cnrm.cloud.google.com", "storagebuckets", verb) for verb in ("get", "list", "watch", "patch")),
    ("storage.cnrm.cloud.google.com", "storagebuckets/status", "patch"),
    *(("", "secrets", verb) for verb in ("get", "list", "watch")),
    *(("", "events", verb) for verb in ("get", "create", "patch")),
    *(("coordination.k8s.io", "leases", verb) for verb in ("get", "list", "create", "update")),
}


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """Where the API server writes down who asked it for what."""
    folder = tmp_path / "audit"
    folder.mkdir()
    return folder


@pytest.fixture
def kubectl_of_own(new_api_server: NewApiServer, kubectl_alone: Kubectl, audit: Path) -> Kubectl:
    """For a cluster of the test's own."""
    return Kubectl(kubectl_alone.program, new_api_server(Settings(arguments=arguments(audit))).access)


@pytest.mark.parametrize("watched", [None, "default"])
def test_what_it_may_do_is_what_it_does(
    kubectl_of_own: Kubectl, audit: Path, tmp_path: Path, watched: str | None
) -> None:
    kubectl, installation = kubectl_of_own, Installation(watch_namespace=watched)
    _install(kubectl, installation)
    kubectl("create", "secret", "generic", "shop-app", "--from-literal=password=Sesame-1")

    with cloud_process() as cloud, _pod(kubectl, tmp_path, cloud, installation) as address:
        assert once(lambda: _status(f"{address}/readyz"), 200) == 200
        assert _status(f"{address}/healthz") == 200
        kubectl("apply", "-f", "-", stdin=BUCKET)
        kubectl("apply", "-f", "-", stdin=USER)
        assert once(lambda: _ready(kubectl, "storagebucket", "logs"), "True") == "True"
        # There is no such instance; to say so, the Secret had to be read.
        assert once(lambda: _ready(kubectl, "sqluser", "app"), "False") == "False"
        kubectl("delete", "storagebucket", "logs", "--timeout=240s")

    asked = requests_of(ACCOUNT, audit)
    assert [one for one in asked if one.is_refused] == []
    assert RIGHTS - {one[:3] for one in asked} <= SELDOM
    assert "written:" not in (tmp_path / "pod.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("watched", [None, "default"])
def test_an_owner_may_make_and_keep_its_children(
    kubectl_of_own: Kubectl, audit: Path, tmp_path: Path, watched: str | None
) -> None:
    images = (("OPERATOR_IMAGE_NAME", "operator:1"),)
    kubectl, installation = kubectl_of_own, Installation(watch_namespace=watched, environment=images)
    _install(kubectl, installation)

    with _pod(kubectl, tmp_path, "http://127.0.0.1:1", installation):
        kubectl("apply", "-f", "-", stdin=TRUSTEE)
        assert once(lambda: _image(kubectl), "operator:1") == "operator:1"
        kubectl("patch", "kbsconfig", "trustee-kbs-config", "--type=merge", "-p", _edited("elsewhere"))
        assert once(lambda: _auth_secret(kubectl), "trustee-auth-secret") == "trustee-auth-secret"
        kubectl("delete", "kbsconfig", "trustee-kbs-config", "--timeout=240s")
        assert once(lambda: _auth_secret(kubectl), "trustee-auth-secret") == "trustee-auth-secret"

    assert [one for one in requests_of(ACCOUNT, audit) if one.is_refused] == []


def _image(kubectl: Kubectl) -> str:
    """What the Deployment runs first; nothing before there is one."""
    path = "jsonpath={.spec.template.spec.initContainers[0].image}"
    return kubectl("get", "deployment", "trustee-deployment", "--ignore-not-found", "-o", path)


def _edited(secret: str) -> str:
    return json.dumps({"spec": {"kbsAuthSecretName": secret}})


def _auth_secret(kubectl: Kubectl) -> str:
    path = "jsonpath={.spec.kbsAuthSecretName}"
    return kubectl("get", "kbsconfig", "trustee-kbs-config", "--ignore-not-found", "-o", path)


def _install(kubectl: Kubectl, installation: Installation) -> None:
    objects = [*types().values(), *process(installation).values()]
    kubectl.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    kubectl("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/part-of=setpoint", "--timeout=240s")
