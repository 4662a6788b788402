"""Config Connector is uninstalled after the hand-over: nothing of it holds anything, and no object goes with it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_transfer import writes
from tests.cli.workspace import Workspace
from tests.cluster.migrating.config_connector_cluster import (
    BUCKETS,
    ConfigConnectorCluster,
    serve_config_connector_kinds,
)
from tests.cluster.polling import until
from tests.cluster.server import Cluster
from tests.scenarios.served_kinds import empty

MIGRATE = ("migrate", "--from", "config-connector")
DEFENDER = "cnrm.cloud.google.com/deletion-defender"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/storagebuckets.storage.cnrm.cloud.google.com"
ABANDON = {"metadata": {"annotations": {"cnrm.cloud.google.com/deletion-policy": "abandon"}}}


def handed_over(theirs: ConfigConnectorCluster, *store: str) -> None:
    done = theirs.workspace.run(*store, *MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")
    assert done.returncode == 0, done.stderr


def finalizers(theirs: ConfigConnectorCluster, name: str) -> list[str]:
    return list(theirs.resource(name)["metadata"].get("finalizers", []))


def message(theirs: ConfigConnectorCluster, name: str) -> str:
    conditions = theirs.resource(name).get("status", {}).get("conditions", [])
    return "".join(one["message"] for one in conditions if one["type"] == "Ready")


def in_cloud(theirs: ConfigConnectorCluster) -> set[str]:
    return {name for name in ("calm", "edited") if _is_there(theirs, name)}


def _is_there(theirs: ConfigConnectorCluster, name: str) -> bool:
    return theirs.workspace.in_cloud(lambda cloud: cloud.call("GET", f"/storage/v1/b/{name}")).status == 200


def test_nothing_is_finished_while_they_are_there(theirs: ConfigConnectorCluster) -> None:
    handed_over(theirs)
    before = theirs.resource("calm")

    done = theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "--finish")

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: Config Connector is still there for {theirs.namespace}: uninstall it first")
    assert theirs.resource("calm") == before


def test_what_is_kept_elsewhere_by_now_is_removed_there_and_its_objects_stay(theirs: ConfigConnectorCluster) -> None:
    handed_over(theirs)
    theirs.uninstall()

    done = theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "--finish")
    again = theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "--finish")

    assert done.stdout.splitlines() == [
        f"StorageBucket {theirs.namespace}/{name} removed there; its object stays, and is managed here"
        for name in ("calm", "edited")
    ]
    assert (done.returncode, done.stderr) == (0, "")
    assert again.stdout == f"Nothing of Config Connector is left in {theirs.namespace}\n"
    assert theirs.cluster.call("GET", BUCKETS.format(theirs.namespace)).body["items"] == []
    assert (in_cloud(theirs), writes(theirs.workspace)) == ({"calm", "edited"}, [])
    assert theirs.workspace.run("get", "StorageBucket/calm", "-n", theirs.namespace).returncode == 0


def test_what_was_not_handed_over_is_not_removed(theirs: ConfigConnectorCluster) -> None:
    theirs.uninstall()

    done = theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "--finish")

    assert done.returncode == 1
    assert done.stderr == (
        f"error: StorageBucket {theirs.namespace}/calm is not declared in our store: hand over first, then finish\n"
    )
    assert finalizers(theirs, "calm") != []


def test_what_stays_in_the_cluster_is_held_until_it_is_free_of_them(theirs: ConfigConnectorCluster) -> None:
    store = ("--store", f"kubernetes?namespace={theirs.namespace}")
    handed_over(theirs, *store)
    theirs.workspace.daemon(before=store)
    until(lambda: "up to date" in message(theirs, "calm"))
    theirs.uninstall()
    theirs.cluster.call("DELETE", f"{BUCKETS.format(theirs.namespace)}/calm")
    until(lambda: DEFENDER in message(theirs, "calm"))
    assert _is_there(theirs, "calm")

    done = theirs.workspace.run(*store, *MIGRATE, "-n", theirs.namespace, "--finish", "-o", "json")

    freed = [{"kind": "StorageBucket", "namespace": theirs.namespace, "name": name} for name in ("calm", "edited")]
    assert (done.returncode, json.loads(done.stdout)) == (0, {"freed": freed}), done.stderr
    until(lambda: not _is_there(theirs, "calm"))
    assert finalizers(theirs, "edited") == ["cnrm.cloud.google.com/finalizer"]
    assert _is_there(theirs, "edited")


@pytest.mark.parametrize("words", [("--finish",), ("--finish", "--hand-over", "-n", "team")])
def test_what_makes_no_sense_is_said(theirs: ConfigConnectorCluster, words: tuple[str, ...]) -> None:
    done = theirs.workspace.run(*MIGRATE, *words)

    assert done.returncode == 1
    assert done.stderr.startswith("error: --finish ")


# --- The kinds are uninstalled as well --------------------------------------------------------------------------------


@pytest.fixture
def own(own_api_server: Cluster, tmp_path: Path) -> Iterator[ConfigConnectorCluster]:
    """The same in a cluster of its own: its kinds can be deleted."""
    cluster = own_api_server.access
    serve_config_connector_kinds(cluster)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    with Workspace(tmp_path, {**kept, "PYTHONUTF8": "1", "KUBECONFIG": str(cluster.kubeconfig)}) as workspace:
        theirs = ConfigConnectorCluster(cluster, cluster.new_namespace(), workspace)
        theirs.make("calm")
        theirs.make("edited", {"versioning": {"enabled": True}})
        yield theirs
        empty(cluster, theirs.namespace)


def test_no_object_goes_with_its_kind(own: ConfigConnectorCluster) -> None:
    store = ("--store", f"kubernetes?namespace={own.namespace}")
    handed_over(own, *store)
    own.workspace.daemon(before=store)
    until(lambda: "up to date" in message(own, "calm") and "up to date" in message(own, "edited"))
    own.workspace.in_cloud(lambda cloud: cloud.journal.clear())
    own.uninstall()

    own.cluster.call("DELETE", CRD)
    until(lambda: DEFENDER in message(own, "calm") and DEFENDER in message(own, "edited"))
    refused = own.workspace.run(*store, *MIGRATE, "-n", own.namespace, "--finish")

    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: the CustomResourceDefinition {CRD.rpartition('/')[2]} is being deleted")
    for name in ("calm", "edited"):
        own.cluster.call("PATCH", f"{BUCKETS.format(own.namespace)}/{name}", ABANDON)
        until(lambda name=name: finalizers(own, name) == [DEFENDER])  # type: ignore[misc] # of this round
    assert (in_cloud(own), writes(own.workspace)) == ({"calm", "edited"}, [])
