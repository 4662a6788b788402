"""`setpoint install` on a real API server, and the program as in its pod: permissions, arguments, environment."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from click.testing import CliRunner, Result

from setpoint.cli.main import main
from setpoint.core.unstructured import plural_name
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import pod_spec
from tests.cluster.assets import Assets
from tests.cluster.ports import free_port
from tests.cluster.server import Cluster, Settings
from tests.deployment.audit_log import AuditedRequest, arguments, requests_of
from tests.deployment.conftest import Kubectl
from tests.deployment.eventually import once
from tests.deployment.file_audit import WATCHED
from tests.deployment.installed_objects import ALL_KINDS, DEFAULT_KINDS
from tests.localcloud.process import cloud_process

CREATED = [
    "CustomResourceDefinition iampartialpolicies.iam.cnrm.cloud.google.com created",
    "CustomResourceDefinition iampolicies.iam.cnrm.cloud.google.com created",
    "CustomResourceDefinition iampolicymembers.iam.cnrm.cloud.google.com created",
    "CustomResourceDefinition kubernetesobjects.setpoint.dev created",
    "CustomResourceDefinition referencegrants.setpoint.dev created",
    "CustomResourceDefinition sqldatabases.sql.cnrm.cloud.google.com created",
    "CustomResourceDefinition sqlinstances.sql.cnrm.cloud.google.com created",
    "CustomResourceDefinition sqlusers.sql.cnrm.cloud.google.com created",
    "CustomResourceDefinition storagebuckets.storage.cnrm.cloud.google.com created",
    "ValidatingAdmissionPolicy setpoint-annotations created",
    "ValidatingAdmissionPolicyBinding setpoint-annotations created",
    "ClusterRole setpoint-view created",
    "ClusterRole setpoint-edit created",
    "ClusterRole setpoint-admin created",
    "Namespace setpoint-system created",
    "ServiceAccount setpoint-system/setpoint created",
    "ClusterRole setpoint created",
    "ClusterRoleBinding setpoint created",
    "Role setpoint-system/setpoint-leases created",
    "RoleBinding setpoint-system/setpoint-leases created",
    "ValidatingAdmissionPolicy setpoint-writes created",
    "ValidatingAdmissionPolicyBinding setpoint-writes created",
    "Service setpoint-system/setpoint-metrics created",
    "NetworkPolicy setpoint-system/setpoint created",
    "PodDisruptionBudget setpoint-system/setpoint created",
    "Deployment setpoint-system/setpoint created",
]
BUCKET = """
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: logs
  annotations: {cnrm.cloud.google.com/project-id: some-project}
spec: {location: EU}
"""
USER = """
apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLUser
metadata:
  name: app
  annotations: {cnrm.cloud.google.com/project-id: some-project}
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
EDIT = '{"spec": {"kbsAuthSecretName": "elsewhere"}}'
AS_GENERATED = "jsonpath={.spec.kbsAuthSecretName}=trustee-auth-secret"


@dataclass(frozen=True, slots=True)
class Pod:
    """The container of a pod as a process here, and the namespace with the resources of a test."""

    kubectl: Kubectl
    installation: Installation
    address: str
    audit: Path
    namespace: str

    def apply(self, manifest: str) -> None:
        """Applies a manifest in the namespace."""
        self("apply", "-f", "-", stdin=manifest)

    def wait_for(self, what: str, name: str) -> None:
        """Returns when the object meets the condition; by a watch."""
        self("wait", f"--for={what}", name, "--timeout=240s")

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """The output of kubectl in the namespace, as the administrator."""
        return self.kubectl(*arguments, "--namespace", self.namespace, stdin=stdin)

    def requests(self) -> set[AuditedRequest]:
        """The requests of the pod so far, with its own rights."""
        return requests_of(f"system:serviceaccount:{self.installation.namespace}:setpoint", self.audit)

    def requests_as_tenant(self) -> set[AuditedRequest]:
        """The requests on behalf of the namespace."""
        return requests_of(f"system:serviceaccount:{self.namespace}:setpoint", self.audit)


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the audit log."""
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def audited(
    cluster_assets: Assets, kubectl_alone: Kubectl, audit: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    """An API server with an audit log."""
    with Cluster(cluster_assets, tmp_path_factory.mktemp("cluster"), Settings(arguments=arguments(audit))) as cluster:
        yield Kubectl(kubectl_alone.program, cluster.access)


@pytest.fixture(scope="module")
def first_install(audited: Kubectl) -> Result:
    """The result of `setpoint install` on an empty cluster."""
    return _install(audited)


def _install(kubectl: Kubectl, *options: str) -> Result:
    return _setpoint(kubectl, "install", *options)


def _setpoint(kubectl: Kubectl, *arguments: str) -> Result:
    assert kubectl.access is not None
    environment = {"KUBECONFIG": str(kubectl.access.kubeconfig)}
    return CliRunner(env=environment).invoke(main, arguments, catch_exceptions=False)


@pytest.fixture(scope="module")
def cloud() -> Iterator[str]:
    with cloud_process() as address:
        yield address


# Each installation has a service account of its own: no permission of the first helps the second.
AS_BY_DEFAULT = ("setpoint-system", None, DEFAULT_KINDS)
WITH_TRUSTEE = ("team-system", "team", ALL_KINDS)


@pytest.fixture(scope="module")
def pod(
    request: pytest.FixtureRequest,
    audited: Kubectl,
    first_install: Result,
    audit: Path,
    cloud: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pod]:
    """A pod that reconciles all namespaces, as installed by default; and one of a single namespace, with Trustee."""
    home, watched, kinds = request.param
    images = (("OPERATOR_IMAGE_NAME", "operator:1"),)
    installation = Installation(namespace=home, watch_namespace=watched, environment=images, kinds=kinds)
    namespace = watched or "default"
    if watched is not None:
        audited("create", "namespace", watched)
        installed = _install(audited, "--namespace", home, "--watch-namespace", watched, "--kinds", ",".join(kinds))
        assert installed.exit_code == 0, installed.output
    assert (
        _setpoint(audited, "tenant", namespace, "--kinds", ",".join(kinds), "--project", "some-project").exit_code == 0
    )
    _until_granted(audited, home, namespace)
    with _process(audited, tmp_path_factory.mktemp("pod"), cloud, installation) as address:
        pod = Pod(audited, installation, address, audit, namespace)
        yield pod
    # The process releases its leases when it ends.
    assert ("coordination.k8s.io", "leases", "update", False) in pod.requests()
    assert [one for one in pod.requests() if one.is_refused] == []


def _until_granted(kubectl: Kubectl, home: str, namespace: str) -> None:
    """Returns when the server knows the new roles and bindings: it learns of each by a watch, after it was created."""
    controller, tenant = (f"system:serviceaccount:{one}:setpoint" for one in (home, namespace))
    buckets = {"group": "storage.cnrm.cloud.google.com", "resource": "storagebuckets"}
    for user, where, right in (
        (controller, namespace, {**buckets, "verb": "patch"}),
        (controller, home, {"group": "coordination.k8s.io", "resource": "leases", "verb": "create"}),
        (controller, namespace, {"resource": "serviceaccounts", "name": "setpoint", "verb": "impersonate"}),
        (tenant, namespace, {"resource": "secrets", "verb": "get"}),
    ):
        spec = {"user": user, "resourceAttributes": {**right, "namespace": where}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        command = ("create", "-f", "-", "-o", "jsonpath={.status.allowed}")
        assert once(partial(kubectl, *command, stdin=json.dumps(review)), "true") == "true", spec


@contextmanager
def _process(kubectl: Kubectl, folder: Path, cloud: str, installation: Installation) -> Iterator[str]:
    """The container as a process; its address. It ends well, and writes no file."""
    (container,) = _list(pod_spec(installation)["containers"])
    port, log = free_port(), folder / "pod.log"
    downward = {"POD_NAME": "setpoint-0", "POD_NAMESPACE": installation.namespace}
    environment = {
        **{one["name"]: downward.get(one["name"]) or one["value"] for one in container["env"]},
        "KUBECONFIG": str(_kubeconfig(kubectl, folder, installation.namespace)),
        "STORAGE_EMULATOR_HOST": cloud,
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{cloud}/",
        "SETPOINT_GCP_AUTH": "anonymous",
        # As in the image.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        one.replace("$(POD_NAME)", "setpoint-0").replace(":8080", f"127.0.0.1:{port}") for one in container["args"]
    ]
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", WATCHED, *command], env=environment, stderr=stderr, cwd=os.sep
        ) as running,
    ):
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()
            code = running.wait(60)
    text = log.read_text(encoding="utf-8")
    assert code == 0, text
    assert "written:" not in text


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


def _status(url: str) -> int:
    try:
        with urlopen(url) as answer:
            return int(answer.status)
    except OSError:
        return 0


def test_install_creates_then_changes_nothing_then_upgrades_and_reports_conflicts(
    audited: Kubectl, first_install: Result
) -> None:
    again = _install(audited)
    upgraded = _install(audited, "--image", "setpoint:next", "--no-crds")

    assert (first_install.exit_code, first_install.stdout.splitlines()) == (0, CREATED)
    assert again.stdout.splitlines() == [line.replace("created", "unchanged") for line in CREATED]
    assert [line for line in upgraded.stdout.splitlines() if not line.endswith("unchanged")] == [
        "Deployment setpoint-system/setpoint updated"
    ]
    # The kinds are served as soon as the command ends.
    assert audited("get", "setpoint", "--all-namespaces") == ""

    # A field of another manager is reported, and not overwritten.
    audited("scale", "-n", "setpoint-system", "deployment/setpoint", "--replicas=5")
    refused = _install(audited)

    assert refused.exit_code == 1
    assert "spec.replicas is held by kubectl" in refused.output
    assert _replicas(audited) == 5
    assert _install(audited, "--force").exit_code == 0
    assert _replicas(audited) == 2


def _replicas(kubectl: Kubectl) -> object:
    return kubectl.get("-n", "setpoint-system", "deployment", "setpoint")["spec"]["replicas"]


# --- The pod ----------------------------------------------------------------------------------------------------------

# This scenario is short: no other writer interferes, and nothing is retried.
SELDOM = {("storage.cnrm.cloud.google.com", "storagebuckets", "get"), ("", "events", "get"), ("", "events", "patch")}
# By namespace: that of the installation with a Trustee has these as well.
WATCHED_FOR = {"default": (), "team": ("configmaps", "persistentvolumeclaims", "services", "deployments")}
PERMISSIONS = {
    *(("storage.cnrm.cloud.google.com", "storagebuckets", verb) for verb in ("get", "list", "watch", "patch")),
    ("storage.cnrm.cloud.google.com", "storagebuckets/status", "patch"),
    *(("", "secrets", verb) for verb in ("list", "watch")),
    ("", "serviceaccounts", "get"),
    *(("", "events", verb) for verb in ("get", "create", "patch")),
    *(("coordination.k8s.io", "leases", verb) for verb in ("get", "list", "create")),
}


# The first test of each pod: a later one would use more permissions.
@pytest.mark.parametrize("pod", [AS_BY_DEFAULT, WITH_TRUSTEE], indirect=True, ids=["default", "trustee"])
def test_a_pod_uses_its_permissions_and_is_never_refused(pod: Pod) -> None:
    pod("create", "secret", "generic", "shop-app", "--from-literal=password=Sesame-1")
    assert once(lambda: _status(f"{pod.address}/readyz"), 200) == 200
    assert _status(f"{pod.address}/healthz") == 200

    pod.apply(BUCKET)
    pod.apply(USER)
    pod.wait_for("condition=Ready", "storagebucket/logs")
    # There is no such instance; to report that, the Secret had to be read.
    pod.wait_for("condition=Ready=False", "sqluser/app")
    pod("delete", "storagebucket", "logs", "--timeout=240s")

    # Events are sent, watches begun and the audit log written beside the steps: each comes in its time.
    assert once(lambda: PERMISSIONS - {one[:3] for one in pod.requests()} <= SELDOM, wanted=True)
    # No kind is watched but those that are named, and what they need.
    watched = {
        "secrets",
        "referencegrants",
        *(plural_name(kind) for kind in pod.installation.kinds),
        *WATCHED_FOR[pod.namespace],
    }
    assert once(lambda: {one.resource for one in pod.requests() if one.verb == "watch"} - {"namespaces"}, watched) == (
        watched
    )
    # The Secret is read as the account of its namespace.
    assert once(lambda: ("", "secrets", "get", False) in pod.requests_as_tenant(), wanted=True)
    requests = pod.requests()
    assert [one for one in requests if one.is_refused] == []
    assert ("", "secrets", "get") not in {one[:3] for one in requests}


@pytest.mark.parametrize("pod", [WITH_TRUSTEE], indirect=True, ids=["trustee"])
def test_a_pod_may_create_revert_and_recreate_children(pod: Pod) -> None:
    pod.apply(TRUSTEE)
    pod.wait_for("create", "deployment/trustee-deployment")
    deployment = pod.kubectl.get("deployment", "trustee-deployment", "--namespace", pod.namespace)
    pod("patch", "kbsconfig", "trustee-kbs-config", "--type=merge", "-p", EDIT)
    pod.wait_for(AS_GENERATED, "kbsconfig/trustee-kbs-config")
    pod("delete", "kbsconfig", "trustee-kbs-config", "--timeout=240s")
    pod.wait_for("create", "kbsconfig/trustee-kbs-config")
    pod.wait_for(AS_GENERATED, "kbsconfig/trustee-kbs-config")

    assert deployment["spec"]["template"]["spec"]["initContainers"][0]["image"] == "operator:1"
    assert [one for one in (*pod.requests(), *pod.requests_as_tenant()) if one.is_refused] == []
    assert {one[:3] for one in pod.requests()} & {("apps", "deployments", "create"), ("", "secrets", "create")} == set()
    assert ("apps", "deployments", "create", False) in pod.requests_as_tenant()
