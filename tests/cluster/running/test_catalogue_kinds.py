"""Kinds of the catalogue in a cluster: those with a definition there are handled, by `setpoint run` and by commands."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from setpoint.app import definitions, definitions_of
from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.kubectl import Kubectl

# That of every new namespace of a test.
PROJECT: Final = "some-project"
COMPUTE: Final = f"/compute.googleapis.com/compute/v1/projects/{PROJECT}"
TOPIC: Final = f"/pubsub.googleapis.com/v1/projects/{PROJECT}/topics/orders"
DATASET: Final = f"/bigquery.googleapis.com/bigquery/v2/projects/{PROJECT}/datasets/sales"
NETWORK: Final = f"{COMPUTE}/global/networks/wide"
SUBNETWORK: Final = f"{COMPUTE}/regions/europe-west1/subnetworks/narrow"
SERVED: Final = (
    ("bigquery.cnrm.cloud.google.com", "BigQueryDataset"),
    ("compute.cnrm.cloud.google.com", "ComputeNetwork"),
    ("compute.cnrm.cloud.google.com", "ComputeSubnetwork"),
    ("pubsub.cnrm.cloud.google.com", "PubSubTopic"),
)


def _manifest(group: str, kind: str, name: str, spec: Any) -> Any:
    version = f"{group}.cnrm.cloud.google.com/v1beta1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


MANIFESTS: Final = (
    _manifest("pubsub", "PubSubTopic", "orders", {"messageRetentionDuration": "86400s"}),
    _manifest("bigquery", "BigQueryDataset", "sales", {"location": "EU", "friendlyName": "Sales"}),
    _manifest("compute", "ComputeNetwork", "wide", {"routingMode": "REGIONAL", "autoCreateSubnetworks": False}),
    _manifest(
        "compute",
        "ComputeSubnetwork",
        "narrow",
        {"region": "europe-west1", "ipCidrRange": "10.2.0.0/16", "networkRef": {"name": "wide"}},
    ),
)
TARGETS: Final = tuple(f"{one['kind'].lower()}/{one['metadata']['name']}" for one in MANIFESTS)


@pytest.fixture(scope="module")
def catalogue_cluster(other_api_server: Access, kubectl_program: Path) -> Access:
    """An API server with the definitions of four kinds of the catalogue, beside those of our own."""
    _install(Kubectl(kubectl_program, other_api_server, "default"), {**definitions(), **definitions_of(SERVED)})
    return other_api_server


def _install(kubectl: Kubectl, found: Any) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": list(found.values())}
    kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(items))
    names = [one["metadata"]["name"] for one in items["items"]]
    kubectl("wait", "--for=condition=Established", "crd", *names, "--timeout=240s")


@pytest.fixture
def harness(catalogue_cluster: Access, kubectl_program: Path, tmp_path: Path) -> Iterator[ControllerHarness]:
    """A namespace of a project, and a local cloud, without a controller."""
    kubectl = Kubectl(kubectl_program, catalogue_cluster, catalogue_cluster.new_namespace())
    with ControllerHarness(kubectl, tmp_path) as harness:
        yield harness


def test_kinds_of_the_catalogue_are_made_corrected_and_deleted(harness: ControllerHarness) -> None:
    controller = harness.start_controller()
    kubectl = harness.kubectl
    kubectl.apply(*MANIFESTS)
    kubectl.until_ready(*TARGETS)

    assert harness.live(TOPIC)["messageRetentionDuration"] == "86400s"
    assert harness.live(DATASET)["friendlyName"] == "Sales"
    assert harness.live(NETWORK)["routingConfig"]["routingMode"] == "REGIONAL"
    assert harness.live(SUBNETWORK)["network"].endswith(f"projects/{PROJECT}/global/networks/wide")
    topic = kubectl.get("pubsubtopic/orders")
    assert topic["status"]["externalRef"] == f"projects/{PROJECT}/topics/orders"
    assert topic["status"]["lastModifiedCookie"]
    # One controller for each kind that is served, and for no other.
    (started,) = controller.logged("running")
    assert started["kinds"] == len(definitions()) - 1 + len(SERVED)

    harness.in_cloud(lambda cloud: cloud.edit(TOPIC, {"messageRetentionDuration": "600s"}))
    kubectl("annotate", "pubsubtopic/orders", "setpoint.dev/reconcile-requested-at=now")
    until(lambda: harness.live(TOPIC)["messageRetentionDuration"] == "86400s")

    kubectl("delete", *TARGETS, "--timeout=240s")
    assert [harness.live(path) for path in (TOPIC, DATASET, NETWORK, SUBNETWORK)] == [None] * 4


def test_commands_reach_the_kinds_that_the_cluster_serves(harness: ControllerHarness) -> None:
    (harness.folder / "topic.yaml").write_text(json.dumps(MANIFESTS[0]))

    planned = harness.setpoint("plan", "-f", "topic.yaml")
    applied = harness.setpoint("apply", "-f", "topic.yaml")
    listed = harness.setpoint("get", "-o", "json")
    named = harness.setpoint("get", "pubsubtopics")
    unserved = harness.setpoint("get", "kmskeyrings")

    assert planned.returncode == 2, planned.stderr
    # It is on record; a controller makes the object.
    assert (applied.returncode, harness.live(TOPIC)) == (3, None), applied.stderr
    assert [one["metadata"]["name"] for one in json.loads(listed.stdout)["items"]] == ["orders"]
    assert "orders" in named.stdout
    assert "the cluster does not serve KMSKeyRing" in unserved.stderr
    assert "`setpoint crds KMSKeyRing | kubectl apply --server-side -f -` installs it" in unserved.stderr


def test_a_controller_of_named_kinds_waits_for_their_definitions(harness: ControllerHarness) -> None:
    controller = harness.start_controller("--kinds=PubSubTopic,KMSKeyRing")

    (started,) = controller.logged("running")
    assert started["kinds"] == 2
    assert [one["kind"] for one in controller.logged("kind not served")] == ["KMSKeyRing"]
