"""Migration from Config Connector in a real cluster: preview, then hand-over by namespace."""

import json

import pytest

from tests.cli.test_transfer import writes
from tests.cli.workspace import bucket
from tests.cluster.migrating.config_connector_cluster import BUCKETS, CONTEXT, ConfigConnectorCluster

MIGRATE = ("migrate", "--from", "config-connector")


def test_the_preview_shows_each_write_with_the_annotation_that_avoids_it(
    config_connector: ConfigConnectorCluster,
) -> None:
    before = {name: config_connector.resource(name) for name in ("calm", "edited")}

    done = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace)
    shown = json.loads(config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "-o", "json").stdout)

    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.splitlines() == [
        f"StorageBucket {config_connector.namespace}/edited writes: first look",
        "~  spec.versioning.enabled  true → false  back to its default",
        "   kept as it is with: cnrm.cloud.google.com/default-to-gcp-fields=spec.versioning.enabled",
        "1 of 2 can be taken over without a write",
    ]
    assert [(one["name"], one["finding"], one["fields"]) for one in shown["resources"]] == [
        ("calm", "one-time", []),
        ("edited", "writes", ["spec.versioning.enabled"]),
    ]
    assert writes(config_connector.workspace) == []
    assert {name: config_connector.resource(name) for name in before} == before
    assert config_connector.mode == "Reconciling"


def test_annotations_of_config_connector_without_effect_are_named(config_connector: ConfigConnectorCluster) -> None:
    config_connector.create("copied", None, **{"cnrm.cloud.google.com/state-into-spec": "merge"})
    config_connector.create("plain", None, **{"cnrm.cloud.google.com/state-into-spec": "absent"})
    config_connector.create("leased", None, **{"cnrm.cloud.google.com/management-conflict-prevention-policy": "none"})

    done = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace)
    shown = json.loads(config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "-o", "json").stdout)

    here = config_connector.namespace
    text = (
        "cnrm.cloud.google.com/state-into-spec has no effect on a StorageBucket: no live value is written into the "
        "spec here. Config Connector keeps the live value of a field that the spec leaves out, with merge and with "
        'absent: cnrm.cloud.google.com/ignore-unspecified-fields: "true" does so here, and "false" says that such a '
        "field goes back to its default"
    )
    assert done.stderr == f"warning: StorageBucket {here}/copied, StorageBucket {here}/plain: {text}\n"
    assert {one["name"]: one["warnings"] for one in shown["resources"]} == {
        "calm": [],
        "copied": [text],
        "edited": [],
        "leased": [],
        "plain": [text],
    }


def test_a_resource_with_an_unknown_deletion_policy_is_not_handed_over(
    config_connector: ConfigConnectorCluster,
) -> None:
    config_connector.create("undecided", None, **{"cnrm.cloud.google.com/deletion-policy": "ABANDON"})
    command = (*MIGRATE, "-n", config_connector.namespace)

    shown = config_connector.workspace.run(*command)
    refused = config_connector.workspace.run(*command, "--hand-over", "--accept-changes")

    message = "cnrm.cloud.google.com/deletion-policy is 'ABANDON': write abandon or delete, in lower case"
    assert (shown.returncode, message in shown.stdout) == (1, True)
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"error: nothing was handed over: StorageBucket {config_connector.namespace}/undecided cannot be previewed"
    )
    assert config_connector.mode == "Reconciling"


def test_a_hand_over_with_writes_is_refused(config_connector: ConfigConnectorCluster) -> None:
    done = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "--hand-over")

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: nothing was handed over: StorageBucket {config_connector.namespace}/edited would be"
    )
    assert config_connector.mode == "Reconciling"
    assert not (config_connector.workspace.folder / ".setpoint").exists()


def test_a_hand_over_pauses_config_connector_and_writes_nothing_to_the_cloud(
    config_connector: ConfigConnectorCluster,
) -> None:
    keep = {"cnrm.cloud.google.com/default-to-gcp-fields": "spec.versioning.enabled"}
    path = f"{BUCKETS.format(config_connector.namespace)}/edited"
    config_connector.cluster.call("PATCH", path, {"metadata": {"annotations": keep}})

    done = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "--hand-over")
    again = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "--hand-over")
    ours = config_connector.workspace.run("reconcile", "-n", config_connector.namespace)
    planned = config_connector.workspace.run("plan", "--all")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == again.stdout
    assert done.stdout.splitlines() == [
        f"StorageBucket {config_connector.namespace}/calm handed over",
        f"StorageBucket {config_connector.namespace}/edited handed over",
        f"Config Connector is paused in {config_connector.namespace}: it touches nothing there any more",
        "There, they are abandoned: deleting them leaves the objects alone",
        "`setpoint plan --all` shows what is left to do; from now on `setpoint run` reconciles them",
    ]
    assert config_connector.mode == "Paused"
    policy = "cnrm.cloud.google.com/deletion-policy"
    assert [config_connector.resource(name)["metadata"]["annotations"][policy] for name in ("calm", "edited")] == [
        "abandon"
    ] * 2
    assert ours.returncode == planned.returncode == 0
    assert planned.stdout.splitlines()[-1] == "StorageBucket   2"
    assert writes(config_connector.workspace) == []
    shown = json.loads(
        config_connector.workspace.run(
            "get", "StorageBucket/calm", "-n", config_connector.namespace, "-o", "json"
        ).stdout
    )
    assert policy not in shown["metadata"]["annotations"]


def test_the_deletion_policy_of_the_author_is_kept(config_connector: ConfigConnectorCluster) -> None:
    policy = "cnrm.cloud.google.com/deletion-policy"
    config_connector.create("kept", None, **{policy: "abandon"})

    config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "--hand-over", "--accept-changes")

    shown = json.loads(
        config_connector.workspace.run(
            "get", "StorageBucket/kept", "-n", config_connector.namespace, "-o", "json"
        ).stdout
    )
    assert shown["metadata"]["annotations"][policy] == "abandon"


def test_a_hand_over_is_refused_when_the_store_has_another_resource_of_that_name(
    config_connector: ConfigConnectorCluster,
) -> None:
    ours = (
        bucket("other")
        .replace("name: other", f"name: calm\n  namespace: {config_connector.namespace}")
        .replace("EU", "US")
    )
    config_connector.workspace.write(ours)
    config_connector.workspace.run("apply", "-f", "manifest.yaml", "--no-wait", "--timeout", "1s")

    done = config_connector.workspace.run(*MIGRATE, "-n", config_connector.namespace, "--hand-over", "--accept-changes")

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: StorageBucket {config_connector.namespace}/calm is declared here already, and otherwise"
    )
    assert config_connector.mode == "Reconciling"
    assert "cnrm.cloud.google.com/deletion-policy" not in config_connector.resource("edited")["metadata"]["annotations"]


def test_secrets_are_handed_over_and_a_password_is_sent_only_when_accepted(
    config_connector: ConfigConnectorCluster,
) -> None:
    workspace, namespace = config_connector.workspace, config_connector.namespace
    workspace.make_instance("main")
    users = "/sql/v1beta4/projects/some-project/instances/main/users"
    workspace.in_cloud(
        lambda cloud: cloud.call("POST", users, {"name": "app", "host": "%", "password": "Sesame-1-open"})
    )
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"app": "Sesame-1-open"}}
    assert config_connector.cluster.call("POST", f"/api/v1/namespaces/{namespace}/secrets", secret).status == 201
    annotations = {"cnrm.cloud.google.com/project-id": "some-project"}
    key = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "app"}}}
    user = {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLUser",
        "metadata": {"name": "app", "annotations": annotations},
        "spec": {"host": "%", "instanceRef": {"external": "main"}, "password": key},
    }
    path = f"/apis/sql.cnrm.cloud.google.com/v1beta1/namespaces/{namespace}/sqlusers"
    assert config_connector.cluster.call("POST", path, user).status == 201
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    previewed = json.loads(workspace.run(*MIGRATE, "-n", namespace, "-o", "json").stdout)
    refused = workspace.run(*MIGRATE, "-n", namespace, "--hand-over")
    before = writes(workspace)
    done = workspace.run(*MIGRATE, "-n", namespace, "--hand-over", "--accept-changes")
    ours = workspace.run("reconcile", "-n", namespace, "SQLUser/app")

    (found,) = [one for one in previewed["resources"] if one["kind"] == "SQLUser"]
    assert (found["finding"], found["fields"], found["keep"]) == (
        "writes",
        ["spec.password"],
        {"cnrm.cloud.google.com/unmanaged": "spec.password"},
    )
    assert (refused.returncode, before, done.returncode) == (1, [], 0)
    assert (ours.returncode, writes(workspace)) == (0, ["PUT"]), ours.stdout
    assert "Sesame" not in f"{previewed} {done.stdout}"


def test_in_the_same_cluster_the_resources_are_not_moved(config_connector: ConfigConnectorCluster) -> None:
    store = ("--store", f"kubernetes?namespace={config_connector.namespace}")

    done = config_connector.workspace.run(
        *store, *MIGRATE, "-n", config_connector.namespace, "--hand-over", "--accept-changes"
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert config_connector.mode == "Paused"
    assert "cnrm.cloud.google.com/deletion-policy" not in config_connector.resource("calm")["metadata"]["annotations"]
    assert "There, they are abandoned" not in done.stdout


def test_a_hand_over_is_refused_while_the_store_deletes_a_resource_of_that_name(
    config_connector: ConfigConnectorCluster,
) -> None:
    hand_over = (*MIGRATE, "-n", config_connector.namespace, "--hand-over", "--accept-changes")
    config_connector.workspace.run(*hand_over)
    config_connector.workspace.run("reconcile", "-n", config_connector.namespace)
    config_connector.workspace.run("export", "-n", config_connector.namespace, "--pause", "--to", "back.yaml")
    config_connector.workspace.run("delete", "StorageBucket/calm", "-n", config_connector.namespace)
    config_connector.cluster.call(
        "PATCH", f"{config_connector.context}/{CONTEXT}", {"spec": {"actuationMode": "Reconciling"}}
    )

    done = config_connector.workspace.run(*hand_over)

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: StorageBucket {config_connector.namespace}/calm is being deleted here")
    assert config_connector.mode == "Reconciling"


def test_a_hand_over_is_refused_while_config_connector_deletes_a_resource(
    config_connector: ConfigConnectorCluster,
) -> None:
    store = ("--store", f"kubernetes?namespace={config_connector.namespace}")
    config_connector.cluster.call("DELETE", f"{BUCKETS.format(config_connector.namespace)}/calm")

    done = config_connector.workspace.run(
        *store, *MIGRATE, "-n", config_connector.namespace, "--hand-over", "--accept-changes"
    )

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: StorageBucket {config_connector.namespace}/calm is being deleted there")
    assert config_connector.mode == "Reconciling"


@pytest.mark.parametrize("is_same_cluster", [False, True], ids=["in a file", "in the same cluster"])
def test_resources_that_an_export_paused_are_resumed_by_another_hand_over(
    config_connector: ConfigConnectorCluster, *, is_same_cluster: bool
) -> None:
    store = (
        "--store",
        f"kubernetes?namespace={config_connector.namespace}" if is_same_cluster else "sqlite:///ours.db",
    )
    hand_over = (*store, *MIGRATE, "-n", config_connector.namespace, "--hand-over", "--accept-changes")
    config_connector.workspace.run(*hand_over)
    config_connector.workspace.run(*store, "export", "-n", config_connector.namespace, "--pause", "--to", "back.yaml")

    again = config_connector.workspace.run(*hand_over)

    assert (again.returncode, again.stderr) == (0, "")
    shown = config_connector.workspace.run(
        *store, "get", "StorageBucket/calm", "-n", config_connector.namespace, "-o", "json"
    )
    annotations = json.loads(shown.stdout)["metadata"]["annotations"]
    assert [name for name in annotations if name.startswith("setpoint.dev/management")] == []


def test_a_namespace_has_to_be_named(config_connector: ConfigConnectorCluster) -> None:
    done = config_connector.workspace.run(*MIGRATE, "--hand-over")

    assert (done.returncode, done.stderr) == (1, "error: --hand-over is for one namespace at a time: name it with -n\n")
