"""A cluster whose CustomResourceDefinitions are missing, or older than the process: the other kinds run."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest

from setpoint.app import definitions
from soak.fleet.process import RunProcess
from tests.cluster.access import Access
from tests.cluster.assets import Assets
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.kubectl import Kubectl
from tests.cluster.running.manifests import bucket, bucket_path, instance
from tests.cluster.server import Cluster, Settings

BUCKETS: Final = ("storage.cnrm.cloud.google.com", "StorageBucket")
INSTANCES: Final = ("sql.cnrm.cloud.google.com", "SQLInstance")
OBJECTS: Final = ("setpoint.dev", "KubernetesObject")
KINDS: Final = ("--kinds", "StorageBucket,SQLInstance,KubernetesObject")
READY: Final = "{.status.conditions[?(@.type=='Ready')]"
UPDATE: Final = "`setpoint crds StorageBucket | kubectl apply --server-side --force-conflicts -f -` does that"


@pytest.fixture(scope="module")
def server(cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """A cluster of these tests alone: they change its definitions."""
    with Cluster(cluster_assets, tmp_path_factory.mktemp("old"), Settings()) as cluster:
        yield cluster.access


@pytest.fixture
def harness(server: Access, kubectl_program: Path, tmp_path: Path) -> Iterator[ControllerHarness]:
    """A namespace there with a local cloud, without a controller."""
    with ControllerHarness(Kubectl(kubectl_program, server, server.new_namespace()), tmp_path) as harness:
        yield harness


def _definitions() -> Any:
    """The definitions of this version, by kind."""
    return definitions()


def _earlier(definition: Any, *fields: str) -> Any:
    """The definition of an earlier version, whose status had none of these fields."""
    earlier = copy.deepcopy(definition)
    (version,) = earlier["spec"]["versions"]
    for field in fields:
        del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"][field]
    return earlier


def _install(kubectl: Kubectl, *crds: Any) -> None:
    """`kubectl apply --server-side`; returns when they are served."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": crds})
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
    names = [f"crd/{one['metadata']['name']}" for one in crds]
    kubectl("wait", *names, "--for=condition=Established", "--timeout=240s")


def _readiness(controller: RunProcess) -> str:
    (address,) = (one["address"] for one in controller.logged("serving"))
    with urlopen(f"{address}/readyz", timeout=60) as answer:
        text: bytes = answer.read()
    return text.decode().strip()


def _ready(harness: ControllerHarness, target: str, member: str) -> str:
    return harness.kubectl("get", target, "-o", f"jsonpath={READY}.{member}}}")


def _is_published(kubectl: Kubectl) -> bool:
    """Whether the API server publishes the earlier definition of buckets: it does so a while after it serves them."""
    found = kubectl.run("get", "--raw", "/openapi/v3/apis/storage.cnrm.cloud.google.com/v1beta1").stdout
    return "StorageBucket" in found and "lastModifiedCookie" not in found


def _require_found_by_doctor(harness: ControllerHarness) -> None:
    """`setpoint doctor` says what the earlier definition of buckets lacks, and what to do."""
    found = harness.setpoint("doctor", "--only", "crds", "-o", "json")
    errors = {one["what"]: one["advice"] for one in json.loads(found.stdout)["findings"] if one["level"] == "error"}
    assert found.returncode == 1
    assert errors == {
        "StorageBucket: the definition lacks status.lastModifiedCookie, status.setpoint: what is there is dropped": (
            "run `setpoint crds StorageBucket | kubectl apply --server-side -f -`"
        )
    }


def test_a_kind_whose_definition_is_too_old_waits_for_a_newer_one_and_the_others_run(
    harness: ControllerHarness,
) -> None:
    kubectl, crds = harness.kubectl, _definitions()
    _install(kubectl, _earlier(crds[BUCKETS], "setpoint", "lastModifiedCookie"), crds[INSTANCES])
    until(lambda: _is_published(kubectl))
    controller = harness.start_controller(*KINDS)
    kubectl.apply(bucket("logs"), instance("db"))
    kubectl.until_ready("sqlinstance/db")
    until(lambda: _ready(harness, "storagebucket/logs", "reason") == "DefinitionOutdated")

    why = (
        "the CustomResourceDefinition of StorageBucket is older than this process: the cluster drops "
        "status.lastModifiedCookie, status.setpoint, where what was done is on record. Nothing is created or changed "
        f"until it is updated: {UPDATE}"
    )
    assert _ready(harness, "storagebucket/logs", "message") == why
    until(lambda: "DefinitionOutdated" in kubectl("events", "--for=storagebucket/logs", "--types=Warning"))
    assert [(line["kind"], line["why"]) for line in controller.logged("definition outdated")] == [
        ("StorageBucket", why)
    ]
    assert _readiness(controller) == (
        "ok, but for want of a CRD not for KubernetesObject, ReferenceGrant, and for a CRD that is too old not for "
        "StorageBucket"
    )
    assert {line["kind"] for line in controller.logged("kind not served")} == {"KubernetesObject", "ReferenceGrant"}
    assert harness.live(bucket_path("logs")) is None
    shown = harness.setpoint("get", "-n", kubectl.namespace)
    unserved = "IAMPartialPolicy, IAMPolicy, IAMPolicyMember, IAMServiceAccountKey, KbsConfig, KubernetesObject"
    assert f"the cluster does not serve {unserved}" in shown.stderr
    assert "DefinitionOutdated" in shown.stdout
    _require_found_by_doctor(harness)

    _install(kubectl, crds[BUCKETS], crds[OBJECTS])
    kubectl.until_ready("storagebucket/logs")

    assert harness.live(bucket_path("logs"))["name"] == "logs"
    assert [line["kind"] for line in controller.logged("definition updated")] == ["StorageBucket"]
    until(lambda: _readiness(controller) == "ok, but for want of a CRD not for ReferenceGrant")


def test_a_definition_that_becomes_older_while_a_controller_runs_loses_no_object(harness: ControllerHarness) -> None:
    kubectl, crds = harness.kubectl, _definitions()
    _install(kubectl, crds[BUCKETS], crds[INSTANCES])
    controller = harness.start_controller("--kinds", "StorageBucket,SQLInstance")
    kubectl.apply(bucket("kept"), bucket("going"))
    kubectl.until_ready("storagebucket/kept", "storagebucket/going")

    _install(kubectl, _earlier(crds[BUCKETS], "setpoint"))
    until(lambda: "setpoint" not in kubectl.get("storagebucket/kept")["status"])
    # The first write shows it: of this one the cluster drops the record, and the condition says so.
    kubectl.apply(bucket("late"))
    until(lambda: _ready(harness, "storagebucket/late", "reason") == "DefinitionOutdated")
    until(lambda: "StorageBucket" in _readiness(controller))
    kubectl("delete", "storagebucket/going", "--wait=false")
    until(lambda: "DefinitionOutdated" in kubectl("events", "--for=storagebucket/going", "--types=Warning"))
    held = kubectl.get("storagebucket/going")["metadata"]

    _install(kubectl, crds[BUCKETS])
    kubectl.until_ready("storagebucket/late", "storagebucket/kept")
    kubectl("wait", "storagebucket/going", "--for=delete", "--timeout=240s")

    assert held["finalizers"] == ["cnrm.cloud.google.com/finalizer"]
    assert kubectl.get("storagebucket/kept")["status"]["setpoint"]["location"]
    assert harness.live(bucket_path("going")) is None
    assert [harness.live(bucket_path(name))["name"] for name in ("kept", "late")] == ["kept", "late"]
    assert [one.method for one in harness.writes_to(bucket_path("kept"))] == []


def test_a_kind_whose_definition_goes_away_does_not_stop_the_others(harness: ControllerHarness) -> None:
    kubectl, crds = harness.kubectl, _definitions()
    _install(kubectl, crds[BUCKETS], crds[OBJECTS])
    controller = harness.start_controller(*KINDS)
    kubectl("delete", "crd", crds[OBJECTS]["metadata"]["name"])
    until(lambda: "KubernetesObject" in [line["kind"] for line in controller.logged("kind not served")])

    kubectl.apply(bucket("after"))
    kubectl.until_ready("storagebucket/after")

    assert "for want of a CRD not for KubernetesObject" in _readiness(controller)
    assert controller.logged("watch broke off") == []
    # Said once, and again when it changes.
    assert [line["kind"] for line in controller.logged("kind not served")].count("KubernetesObject") == 1
