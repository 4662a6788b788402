"""From Config Connector to us, in a real cluster: looked at first, then handed over namespace by namespace."""

import json

import pytest

from tests.cli.test_transfer import writes
from tests.cli.workspace import bucket
from tests.cluster.migrating.config_connector_cluster import BUCKETS, CONTEXT, ConfigConnectorCluster

MIGRATE = ("migrate", "--from", "config-connector")


def test_what_taking_over_would_write_is_told_with_what_keeps_it(theirs: ConfigConnectorCluster) -> None:
    before = {name: theirs.resource(name) for name in ("calm", "edited")}

    done = theirs.workspace.run(*MIGRATE, "-n", theirs.namespace)
    told = json.loads(theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "-o", "json").stdout)

    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.splitlines() == [
        f"StorageBucket {theirs.namespace}/edited writes: first look",
        "~  spec.versioning.enabled  true → false  back to its default",
        "   kept as it is with: cnrm.cloud.google.com/default-to-gcp-fields=spec.versioning.enabled",
        "1 of 2 can be taken over without a write",
    ]
    assert [(one["name"], one["finding"], one["fields"]) for one in told["resources"]] == [
        ("calm", "one-time", []),
        ("edited", "writes", ["spec.versioning.enabled"]),
    ]
    assert writes(theirs.workspace) == []
    assert {name: theirs.resource(name) for name in before} == before
    assert theirs.mode == "Reconciling"


def test_nothing_is_handed_over_that_would_be_written_to(theirs: ConfigConnectorCluster) -> None:
    done = theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "--hand-over")

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: nothing was handed over: StorageBucket {theirs.namespace}/edited would be")
    assert theirs.mode == "Reconciling"
    assert not (theirs.workspace.folder / ".setpoint").exists()


def test_their_controller_stops_first_and_ours_writes_nothing(theirs: ConfigConnectorCluster) -> None:
    keep = {"cnrm.cloud.google.com/default-to-gcp-fields": "spec.versioning.enabled"}
    path = f"{BUCKETS.format(theirs.namespace)}/edited"
    theirs.cluster.call("PATCH", path, {"metadata": {"annotations": keep}})

    done = theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "--hand-over")
    again = theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "--hand-over")
    ours = theirs.workspace.run("reconcile", "-n", theirs.namespace)
    rested = theirs.workspace.run("plan", "--all")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == again.stdout
    assert done.stdout.splitlines() == [
        f"StorageBucket {theirs.namespace}/calm handed over",
        f"StorageBucket {theirs.namespace}/edited handed over",
        f"Config Connector is paused in {theirs.namespace}: it touches nothing there any more",
        "There, they are abandoned: deleting them leaves the objects alone",
        "`setpoint plan --all` shows what is left to do; from now on `setpoint run` reconciles them",
    ]
    assert theirs.mode == "Paused"
    policy = "cnrm.cloud.google.com/deletion-policy"
    assert [theirs.resource(name)["metadata"]["annotations"][policy] for name in ("calm", "edited")] == ["abandon"] * 2
    assert ours.returncode == rested.returncode == 0
    assert rested.stdout.splitlines()[-1] == "StorageBucket   2"
    assert writes(theirs.workspace) == []
    told = json.loads(theirs.workspace.run("get", "StorageBucket/calm", "-n", theirs.namespace, "-o", "json").stdout)
    assert policy not in told["metadata"]["annotations"]


def test_what_an_author_abandons_stays_abandoned_with_us(theirs: ConfigConnectorCluster) -> None:
    policy = "cnrm.cloud.google.com/deletion-policy"
    theirs.make("kept", None, **{policy: "abandon"})

    theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")

    told = json.loads(theirs.workspace.run("get", "StorageBucket/kept", "-n", theirs.namespace, "-o", "json").stdout)
    assert told["metadata"]["annotations"][policy] == "abandon"


def test_nothing_is_stopped_when_our_store_has_something_else_of_that_name(theirs: ConfigConnectorCluster) -> None:
    ours = bucket("other").replace("name: other", f"name: calm\n  namespace: {theirs.namespace}").replace("EU", "US")
    theirs.workspace.write(ours)
    theirs.workspace.run("apply", "-f", "manifest.yaml", "--no-wait", "--timeout", "1s")

    done = theirs.workspace.run(*MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: StorageBucket {theirs.namespace}/calm is declared here already, and otherwise"
    )
    assert theirs.mode == "Reconciling"
    assert "cnrm.cloud.google.com/deletion-policy" not in theirs.resource("edited")["metadata"]["annotations"]


def test_secrets_go_along_and_a_password_is_sent_only_if_that_is_accepted(theirs: ConfigConnectorCluster) -> None:
    workspace, namespace = theirs.workspace, theirs.namespace
    workspace.make_instance("main")
    users = "/sql/v1beta4/projects/some-project/instances/main/users"
    workspace.in_cloud(
        lambda cloud: cloud.call("POST", users, {"name": "app", "host": "%", "password": "Sesame-1-open"})
    )
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"app": "Sesame-1-open"}}
    assert theirs.cluster.call("POST", f"/api/v1/namespaces/{namespace}/secrets", secret).status == 201
    annotations = {"cnrm.cloud.google.com/project-id": "some-project"}
    key = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "app"}}}
    user = {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLUser",
        "metadata": {"name": "app", "annotations": annotations},
        "spec": {"host": "%", "instanceRef": {"external": "main"}, "password": key},
    }
    path = f"/apis/sql.cnrm.cloud.google.com/v1beta1/namespaces/{namespace}/sqlusers"
    assert theirs.cluster.call("POST", path, user).status == 201
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    looked = json.loads(workspace.run(*MIGRATE, "-n", namespace, "-o", "json").stdout)
    refused = workspace.run(*MIGRATE, "-n", namespace, "--hand-over")
    before = writes(workspace)
    done = workspace.run(*MIGRATE, "-n", namespace, "--hand-over", "--accept-changes")
    ours = workspace.run("reconcile", "-n", namespace, "SQLUser/app")

    (found,) = [one for one in looked["resources"] if one["kind"] == "SQLUser"]
    assert (found["finding"], found["fields"], found["keep"]) == (
        "writes",
        ["spec.password"],
        {"cnrm.cloud.google.com/unmanaged": "spec.password"},
    )
    assert (refused.returncode, before, done.returncode) == (1, [], 0)
    assert (ours.returncode, writes(workspace)) == (0, ["PUT"]), ours.stdout
    assert "Sesame" not in f"{looked} {done.stdout}"


def test_in_the_same_cluster_the_resources_stay_where_they_are(theirs: ConfigConnectorCluster) -> None:
    store = ("--store", f"kubernetes?namespace={theirs.namespace}")

    done = theirs.workspace.run(*store, *MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")

    assert (done.returncode, done.stderr) == (0, "")
    assert theirs.mode == "Paused"
    assert "cnrm.cloud.google.com/deletion-policy" not in theirs.resource("calm")["metadata"]["annotations"]
    assert "There, they are abandoned" not in done.stdout


def test_nothing_is_stopped_while_our_store_still_deletes_one_of_that_name(theirs: ConfigConnectorCluster) -> None:
    hand_over = (*MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")
    theirs.workspace.run(*hand_over)
    theirs.workspace.run("reconcile", "-n", theirs.namespace)
    theirs.workspace.run("export", "-n", theirs.namespace, "--pause", "--to", "back.yaml")
    theirs.workspace.run("delete", "StorageBucket/calm", "-n", theirs.namespace)
    theirs.cluster.call("PATCH", f"{theirs.context}/{CONTEXT}", {"spec": {"actuationMode": "Reconciling"}})

    done = theirs.workspace.run(*hand_over)

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: StorageBucket {theirs.namespace}/calm is being deleted here")
    assert theirs.mode == "Reconciling"


def test_nothing_is_stopped_while_they_still_delete_one_in_the_same_cluster(theirs: ConfigConnectorCluster) -> None:
    store = ("--store", f"kubernetes?namespace={theirs.namespace}")
    theirs.cluster.call("DELETE", f"{BUCKETS.format(theirs.namespace)}/calm")

    done = theirs.workspace.run(*store, *MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: StorageBucket {theirs.namespace}/calm is being deleted there")
    assert theirs.mode == "Reconciling"


@pytest.mark.parametrize("is_same_cluster", [False, True], ids=["in a file", "in the same cluster"])
def test_what_an_export_paused_goes_on_when_it_is_handed_over_again(
    theirs: ConfigConnectorCluster, *, is_same_cluster: bool
) -> None:
    store = ("--store", f"kubernetes?namespace={theirs.namespace}" if is_same_cluster else "sqlite:///ours.db")
    hand_over = (*store, *MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")
    theirs.workspace.run(*hand_over)
    theirs.workspace.run(*store, "export", "-n", theirs.namespace, "--pause", "--to", "back.yaml")

    again = theirs.workspace.run(*hand_over)

    assert (again.returncode, again.stderr) == (0, "")
    told = theirs.workspace.run(*store, "get", "StorageBucket/calm", "-n", theirs.namespace, "-o", "json")
    said = json.loads(told.stdout)["metadata"]["annotations"]
    assert [name for name in said if name.startswith("setpoint.dev/management")] == []


def test_a_namespace_has_to_be_named(theirs: ConfigConnectorCluster) -> None:
    done = theirs.workspace.run(*MIGRATE, "--hand-over")

    assert (done.returncode, done.stderr) == (1, "error: --hand-over is for one namespace at a time: name it with -n\n")
