"""From Config Connector to us, in a real cluster: looked at first, then handed over namespace by namespace."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.desk import Desk, bucket
from tests.cli.test_moving import writes
from tests.cluster.access import Access
from tests.cluster.patience import until
from tests.scenarios.served_kinds import empty, serve_kinds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CORE = "core.cnrm.cloud.google.com"
CONTEXT = f"configconnectorcontext.{CORE}"
BUCKETS = "/apis/storage.cnrm.cloud.google.com/v1beta1/namespaces/{}/storagebuckets"
COOKIE = "c/2jmj7l5rSw0yVb_vlWAYkK_YBwk=/2jmj7l5rSw0yVb_vlWAYkK_YBwk="
MIGRATE = ("migrate", "--from", "config-connector")


@pytest.fixture(scope="module")
def cluster(api_server: Access) -> Access:
    """A cluster with the kinds of Config Connector, and the one by which it is switched."""
    serve_kinds(api_server)
    names = {"plural": "configconnectorcontexts", "kind": "ConfigConnectorContext"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": schema}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"configconnectorcontexts.{CORE}"},
        "spec": {"group": CORE, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    assert api_server.call("POST", CRDS, definition).status in (201, 409)
    path = f"/apis/{CORE}/v1beta1/namespaces/default/configconnectorcontexts"
    until(lambda: api_server.call("GET", path).status == 200)
    return api_server


class Theirs:
    """A namespace that Config Connector looks after, with buckets that it made."""

    def __init__(self, cluster: Access, namespace: str, desk: Desk) -> None:
        self.cluster, self.namespace, self.desk = cluster, namespace, desk
        self.context = f"/apis/{CORE}/v1beta1/namespaces/{namespace}/configconnectorcontexts"
        spec = {"actuationMode": "Reconciling"}
        body = {"apiVersion": f"{CORE}/v1beta1", "kind": "ConfigConnectorContext", "metadata": {"name": CONTEXT}}
        assert cluster.call("POST", self.context, {**body, "spec": spec}).status == 201

    def make(self, name: str, live: dict[str, Any] | None = None, **annotations: str) -> None:
        """A bucket that is declared, made and settled, as their controller leaves it."""
        said = {"cnrm.cloud.google.com/project-id": "some-project", **annotations}
        metadata: dict[str, Any] = {
            "name": name,
            "annotations": {"cnrm.cloud.google.com/last-changed-cookie": COOKIE, **said},
        }
        metadata["finalizers"] = ["cnrm.cloud.google.com/finalizer", "cnrm.cloud.google.com/deletion-defender"]
        head = {"apiVersion": "storage.cnrm.cloud.google.com/v1beta1", "kind": "StorageBucket", "metadata": metadata}
        made = self.cluster.call("POST", BUCKETS.format(self.namespace), {**head, "spec": {"location": "EU"}})
        assert made.status == 201, made
        body = {"name": name, "location": "EU", "labels": {"managed-by-cnrm": "true"}, **(live or {})}
        path = "/storage/v1/b?project=some-project"
        self.desk.in_cloud(lambda cloud: cloud.call("POST", path, body))

    def resource(self, name: str) -> dict[str, Any]:
        body: dict[str, Any] = self.cluster.call("GET", f"{BUCKETS.format(self.namespace)}/{name}").body
        return body

    @property
    def mode(self) -> str:
        return str(self.cluster.call("GET", f"{self.context}/{CONTEXT}").body["spec"]["actuationMode"])


@pytest.fixture
def theirs(cluster: Access, namespace: str, tmp_path: Path) -> Iterator[Theirs]:
    """One bucket as declared, and one of which somebody set more than is declared."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    with Desk(tmp_path, {**kept, "PYTHONUTF8": "1", "KUBECONFIG": str(cluster.kubeconfig)}) as desk:
        theirs = Theirs(cluster, namespace, desk)
        theirs.make("calm")
        theirs.make("edited", {"versioning": {"enabled": True}})
        desk.in_cloud(lambda cloud: cloud.journal.clear())
        yield theirs
        empty(cluster, namespace)


def test_what_taking_over_would_write_is_told_with_what_keeps_it(theirs: Theirs) -> None:
    before = {name: theirs.resource(name) for name in ("calm", "edited")}

    done = theirs.desk.run(*MIGRATE, "-n", theirs.namespace)
    told = json.loads(theirs.desk.run(*MIGRATE, "-n", theirs.namespace, "-o", "json").stdout)

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
    assert writes(theirs.desk) == []
    assert {name: theirs.resource(name) for name in before} == before
    assert theirs.mode == "Reconciling"


def test_nothing_is_handed_over_that_would_be_written_to(theirs: Theirs) -> None:
    done = theirs.desk.run(*MIGRATE, "-n", theirs.namespace, "--hand-over")

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: nothing was handed over: StorageBucket {theirs.namespace}/edited would be")
    assert theirs.mode == "Reconciling"
    assert not (theirs.desk.folder / ".setpoint").exists()


def test_their_controller_stops_first_and_ours_writes_nothing(theirs: Theirs) -> None:
    keep = {"cnrm.cloud.google.com/default-to-gcp-fields": "spec.versioning.enabled"}
    path = f"{BUCKETS.format(theirs.namespace)}/edited"
    theirs.cluster.call("PATCH", path, {"metadata": {"annotations": keep}})

    done = theirs.desk.run(*MIGRATE, "-n", theirs.namespace, "--hand-over")
    again = theirs.desk.run(*MIGRATE, "-n", theirs.namespace, "--hand-over")
    ours = theirs.desk.run("reconcile", "-n", theirs.namespace)
    rested = theirs.desk.run("plan", "--all")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == again.stdout
    assert done.stdout.splitlines() == [
        f"StorageBucket {theirs.namespace}/calm handed over",
        f"StorageBucket {theirs.namespace}/edited handed over",
        f"Config Connector is paused in {theirs.namespace}: it touches nothing there any more",
        "There, they are abandoned: whoever deletes them leaves the objects alone",
        "`setpoint plan --all` shows what is left to do; from now on `setpoint run` looks after them",
    ]
    assert theirs.mode == "Paused"
    policy = "cnrm.cloud.google.com/deletion-policy"
    assert [theirs.resource(name)["metadata"]["annotations"][policy] for name in ("calm", "edited")] == ["abandon"] * 2
    assert ours.returncode == rested.returncode == 0
    assert rested.stdout.splitlines()[-1] == "StorageBucket   2"
    assert writes(theirs.desk) == []
    told = json.loads(theirs.desk.run("get", "StorageBucket/calm", "-n", theirs.namespace, "-o", "json").stdout)
    assert policy not in told["metadata"]["annotations"]


def test_what_an_author_abandons_stays_abandoned_with_us(theirs: Theirs) -> None:
    policy = "cnrm.cloud.google.com/deletion-policy"
    theirs.make("kept", None, **{policy: "abandon"})

    theirs.desk.run(*MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")

    told = json.loads(theirs.desk.run("get", "StorageBucket/kept", "-n", theirs.namespace, "-o", "json").stdout)
    assert told["metadata"]["annotations"][policy] == "abandon"


def test_nothing_is_stopped_when_our_store_has_something_else_of_that_name(theirs: Theirs) -> None:
    ours = bucket("other").replace("name: other", f"name: calm\n  namespace: {theirs.namespace}").replace("EU", "US")
    theirs.desk.write(ours)
    theirs.desk.run("apply", "-f", "manifest.yaml", "--no-wait", "--timeout", "1s")

    done = theirs.desk.run(*MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: StorageBucket {theirs.namespace}/calm is declared here already, and otherwise"
    )
    assert theirs.mode == "Reconciling"
    assert "cnrm.cloud.google.com/deletion-policy" not in theirs.resource("edited")["metadata"]["annotations"]


def test_secrets_go_along_and_a_password_is_sent_only_if_that_is_accepted(theirs: Theirs) -> None:
    desk, namespace = theirs.desk, theirs.namespace
    desk.make_instance("main")
    users = "/sql/v1beta4/projects/some-project/instances/main/users"
    desk.in_cloud(lambda cloud: cloud.call("POST", users, {"name": "app", "host": "%", "password": "Sesame-1-open"}))
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
    desk.in_cloud(lambda cloud: cloud.journal.clear())

    looked = json.loads(desk.run(*MIGRATE, "-n", namespace, "-o", "json").stdout)
    refused = desk.run(*MIGRATE, "-n", namespace, "--hand-over")
    before = writes(desk)
    done = desk.run(*MIGRATE, "-n", namespace, "--hand-over", "--accept-changes")
    ours = desk.run("reconcile", "-n", namespace, "SQLUser/app")

    (found,) = [one for one in looked["resources"] if one["kind"] == "SQLUser"]
    assert (found["finding"], found["fields"], found["keep"]) == (
        "writes",
        ["spec.password"],
        {"cnrm.cloud.google.com/unmanaged": "spec.password"},
    )
    assert (refused.returncode, before, done.returncode) == (1, [], 0)
    assert (ours.returncode, writes(desk)) == (0, ["PUT"]), ours.stdout
    assert "Sesame" not in f"{looked} {done.stdout}"


def test_in_the_same_cluster_the_resources_stay_where_they_are(theirs: Theirs) -> None:
    store = ("--store", f"kubernetes?namespace={theirs.namespace}")

    done = theirs.desk.run(*store, *MIGRATE, "-n", theirs.namespace, "--hand-over", "--accept-changes")

    assert (done.returncode, done.stderr) == (0, "")
    assert theirs.mode == "Paused"
    assert "cnrm.cloud.google.com/deletion-policy" not in theirs.resource("calm")["metadata"]["annotations"]
    assert "There, they are abandoned" not in done.stdout


def test_a_namespace_has_to_be_named(theirs: Theirs) -> None:
    done = theirs.desk.run(*MIGRATE, "--hand-over")

    assert (done.returncode, done.stderr) == (1, "error: --hand-over is for one namespace at a time: name it with -n\n")
