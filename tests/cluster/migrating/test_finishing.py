"""`migrate --finish` after Config Connector was uninstalled: its finalizers are removed, and no object is deleted."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_moving import writes
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
DELETION_DEFENDER = "cnrm.cloud.google.com/deletion-defender"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/storagebuckets.storage.cnrm.cloud.google.com"
ABANDON = {"metadata": {"annotations": {"cnrm.cloud.google.com/deletion-policy": "abandon"}}}


def handed_over(config_connector: ConfigConnectorCluster, *store: str) -> None:
    done = config_connector.workspace.run(
        *store, *MIGRATE, "-n", config_connector.namespace, "--hand-over", "--accept-changes"
    )
    assert done.returncode == 0, done.stderr


def finalizers(config_connector: ConfigConnectorCluster, name: str) -> list[str]:
    return list(config_connector.resource(name)["metadata"].get("finalizers", []))


def message(config_connector: ConfigConnectorCluster, name: str) -> str:
    conditions = config_connector.resource(name).get("status", {}).get("conditions", [])
    return "".join(one["message"] for one in conditions if one["type"] == "Ready")


def in_cloud(config_connector: ConfigConnectorCluster) -> set[str]:
    return {name for name in ("calm", "edited") if _is_there(config_connector, name)}


def _is_there(config_connector: ConfigConnectorCluster, name: str) -> bool:
    return config_connector.workspace.in_cloud(lambda cloud: cloud.call("GET", f"/storage/v1/b/{name}")).status == 200


def test_finish_is_refused_while_config_connector_is_installed(config_connector: ConfigConnectorCluster) -> None:
    handed_over(config_connector)
    before = config_connector.resource("calm")

    done = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "--finish")

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: Config Connector is still there for {config_connector.namespace}: uninstall it first"
    )
    assert config_connector.resource("calm") == before


def test_handed_over_resources_are_removed_and_their_objects_stay(config_connector: ConfigConnectorCluster) -> None:
    handed_over(config_connector)
    config_connector.uninstall()

    done = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "--finish")
    again = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "--finish")

    assert done.stdout.splitlines() == [
        f"StorageBucket {config_connector.namespace}/{name} removed there; its object stays, and is managed here"
        for name in ("calm", "edited")
    ]
    assert (done.returncode, done.stderr) == (0, "")
    assert again.stdout == f"Nothing of Config Connector is left in {config_connector.namespace}\n"
    assert config_connector.cluster.call("GET", BUCKETS.format(config_connector.namespace)).body["items"] == []
    assert (in_cloud(config_connector), writes(config_connector.workspace)) == ({"calm", "edited"}, [])
    assert config_connector.workspace.run("get", "StorageBucket/calm", "-n", config_connector.namespace).returncode == 0


def test_resources_that_were_not_handed_over_are_not_removed(config_connector: ConfigConnectorCluster) -> None:
    config_connector.uninstall()

    done = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "--finish")

    assert done.returncode == 1
    resource = f"StorageBucket {config_connector.namespace}/calm"
    assert done.stderr == f"error: {resource} is not declared in our store: hand over first, then finish\n"
    assert finalizers(config_connector, "calm") != []


def test_a_deletion_in_the_same_cluster_waits_for_finish(
    config_connector: ConfigConnectorCluster,
) -> None:
    store = ("--store", f"kubernetes?namespace={config_connector.namespace}")
    handed_over(config_connector, *store)
    config_connector.workspace.daemon(before=store)
    until(lambda: "up to date" in message(config_connector, "calm"))
    config_connector.uninstall()
    config_connector.cluster.call("DELETE", f"{BUCKETS.format(config_connector.namespace)}/calm")
    until(lambda: DELETION_DEFENDER in message(config_connector, "calm"))
    assert _is_there(config_connector, "calm")

    done = config_connector.workspace.run(*store, *MIGRATE, "-n", config_connector.namespace, "--finish", "-o", "json")

    freed = [
        {"kind": "StorageBucket", "namespace": config_connector.namespace, "name": name} for name in ("calm", "edited")
    ]
    assert (done.returncode, json.loads(done.stdout)) == (0, {"freed": freed}), done.stderr
    until(lambda: not _is_there(config_connector, "calm"))
    assert finalizers(config_connector, "edited") == ["cnrm.cloud.google.com/finalizer"]
    assert _is_there(config_connector, "edited")


@pytest.mark.parametrize("words", [("--finish",), ("--finish", "--hand-over", "-n", "team")])
def test_invalid_combinations_of_options_are_refused(
    config_connector: ConfigConnectorCluster, words: tuple[str, ...]
) -> None:
    done = config_connector.workspace.run(*MIGRATE, *words)

    assert done.returncode == 1
    assert done.stderr.startswith("error: --finish ")


# --- The definitions are deleted as well ------------------------------------------------------------------------------


@pytest.fixture
def own(own_api_server: Cluster, tmp_path: Path) -> Iterator[ConfigConnectorCluster]:
    """The same in a cluster of its own, whose definitions can be deleted."""
    cluster = own_api_server.access
    serve_config_connector_kinds(cluster)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    with Workspace(tmp_path, {**kept, "PYTHONUTF8": "1", "KUBECONFIG": str(cluster.kubeconfig)}) as workspace:
        config_connector = ConfigConnectorCluster(cluster, cluster.new_namespace(), workspace)
        config_connector.create("calm")
        config_connector.create("edited", {"versioning": {"enabled": True}})
        yield config_connector
        empty(cluster, config_connector.namespace)


def test_no_object_is_deleted_with_its_definition(own: ConfigConnectorCluster) -> None:
    store = ("--store", f"kubernetes?namespace={own.namespace}")
    handed_over(own, *store)
    own.workspace.daemon(before=store)
    until(lambda: "up to date" in message(own, "calm") and "up to date" in message(own, "edited"))
    own.workspace.in_cloud(lambda cloud: cloud.journal.clear())
    own.uninstall()

    own.cluster.call("DELETE", CRD)
    until(lambda: DELETION_DEFENDER in message(own, "calm") and DELETION_DEFENDER in message(own, "edited"))
    refused = own.workspace.run(*store, *MIGRATE, "-n", own.namespace, "--finish")

    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: the CustomResourceDefinition {CRD.rpartition('/')[2]} is being deleted")
    for name in ("calm", "edited"):
        own.cluster.call("PATCH", f"{BUCKETS.format(own.namespace)}/{name}", ABANDON)
        until(lambda name=name: finalizers(own, name) == [DELETION_DEFENDER])  # type: ignore[misc] # of this round
    assert (in_cloud(own), writes(own.workspace)) == ({"calm", "edited"}, [])
