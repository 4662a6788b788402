"""A transfer from a file into a cluster and back, with real kinds, by commands: no object is written."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.workspace import Workspace
from tests.cluster.access import Access
from tests.forking.processes import SETPOINT
from tests.scenarios.served_kinds import serve_kinds

SQL, STORAGE = "sql.cnrm.cloud.google.com/v1beta1", "storage.cnrm.cloud.google.com/v1beta1"
OLD, CLUSTER, NEW = "sqlite:///old.db", "kubernetes", "sqlite:///new.db"
NAMES: Final = ("SQLInstance/shop", "SQLDatabase/orders", "SQLUser/app", "StorageBucket/logs")
# The kinds with a cookie.
STATEFUL: Final = ("SQLInstance/shop", "StorageBucket/logs")


@pytest.fixture(scope="module")
def cluster(api_server: Access) -> Access:
    serve_kinds(api_server)
    return api_server


@pytest.fixture
def harness(tmp_path: Path, cluster: Access, namespace: str) -> Iterator["TransferHarness"]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    # Leases of our own: other processes reconcile parts of the same cluster.
    here = {"KUBECONFIG": str(cluster.kubeconfig), "POD_NAMESPACE": namespace, "PYTHONUTF8": "1"}
    with Workspace(tmp_path, {**kept, **here}) as workspace:
        yield TransferHarness(workspace, namespace)


class TransferHarness:
    """A workspace with resources, a cloud, a file and a cluster."""

    def __init__(self, workspace: Workspace, namespace: str) -> None:
        self.workspace = workspace
        self._namespace = namespace

    def declare(self) -> None:
        """An instance with a root password, what is in it, and a bucket: made, and settled."""
        secret = {"root": "first-Sesame-1", "app": "second-Sesame-2"}
        spec = {"databaseVersion": "POSTGRES_16", "region": "europe-west1", "settings": {"tier": "db-custom-1-3840"}}
        within = {"instanceRef": {"name": "shop"}}
        self.workspace.write(
            self._manifest("v1", "Secret", "passwords", stringData=secret),
            self._manifest(SQL, "SQLInstance", "shop", spec={**spec, "rootPassword": _from_secret("root")}),
            self._manifest(SQL, "SQLDatabase", "orders", spec={**within, "charset": "UTF8"}),
            self._manifest(SQL, "SQLUser", "app", spec={**within, "password": _from_secret("app")}),
            self._manifest(STORAGE, "StorageBucket", "logs", spec={"location": "EU", "versioning": {"enabled": True}}),
        )
        self.run("--store", OLD, "apply", "-f", "manifest.yaml")

    def _manifest(self, api_version: str, kind: str, name: str, **members: Any) -> str:
        annotations = {"cnrm.cloud.google.com/project-id": "some-project"}
        metadata = {"name": name, "namespace": self._namespace, "annotations": annotations}
        return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}) + "\n"

    def run(self, *arguments: str) -> str:
        """What the command prints."""
        done = self.workspace.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def move(self, source: str, target: str, *options: str) -> list[str]:
        """The output of the import, for a transfer through a pipe."""
        given = f"{SETPOINT} --store {source} export -n {self._namespace} --pause --to - {' '.join(options)}"
        taken = f"{SETPOINT} --store {target} import -f -"
        done = self.workspace.run_program("bash", "-euo", "pipefail", "-c", f"{given} | {taken}")
        assert done.returncode == 0, done.stdout + done.stderr
        return [line.replace(f"{self._namespace}/", "") for line in done.stdout.splitlines()]

    def plans(self, store: str) -> dict[str, Any]:
        """The plan of each resource."""
        shown = json.loads(self.run("--store", store, "plan", "-n", self._namespace, "-o", "json"))
        return {f"{one['kind']}/{one['name']}": one["plan"] for one in shown["results"]}

    def explained(self, store: str) -> Any:
        """The last step of each, as `explain` shows it."""
        shown = json.loads(self.run("--store", store, "explain", "-n", self._namespace, "-o", "json"))
        return {f"{one['kind']}/{one['name']}": one["step"] for one in shown}

    def reconcile(self, store: str) -> list[str]:
        """The output of a reconcile of everything."""
        *lines, _ = self.run("--store", store, "reconcile", "-n", self._namespace).splitlines()
        return sorted(line.replace(f"{self._namespace}/", "") for line in lines)

    def forget_requests(self) -> None:
        self.workspace.in_cloud(lambda cloud: cloud.journal.clear())

    @property
    def requests(self) -> list[str]:
        """The methods of all requests that reached the cloud."""
        return [entry.method for entry in self.workspace.in_cloud(lambda cloud: cloud.journal.entries)]

    @property
    def has_passwords(self) -> tuple[bool, bool]:
        """Whether the service has the passwords of the Secret: the root password, and the user's."""

        def both(cloud: Any) -> tuple[bool, bool]:
            return (
                cloud.password_matches("some-project", "shop", "postgres", "first-Sesame-1"),
                cloud.password_matches("some-project", "shop", "app", "second-Sesame-2"),
            )

        return self.workspace.in_cloud(both)


def _from_secret(key: str) -> dict[str, Any]:
    return {"valueFrom": {"secretKeyRef": {"name": "passwords", "key": key}}}


MOVED = [f"{kind} {name} moved" for kind, name in sorted(one.split("/") for one in NAMES)]
UNCHANGED = [f"{kind} {name} unchanged" for kind, name in sorted(one.split("/") for one in NAMES)]


def test_a_transfer_into_a_cluster_and_back_writes_nothing_to_the_cloud_and_keeps_all_state(
    harness: TransferHarness, namespace: str
) -> None:
    harness.declare()
    explained = harness.explained(OLD)
    harness.forget_requests()

    there = harness.move(OLD, CLUSTER, "--with-secrets")
    plans = harness.plans(CLUSTER)
    daemon = harness.workspace.daemon(
        "--metrics", "127.0.0.1:0", before=("--store", f"{CLUSTER}?namespace={namespace}")
    )
    reconciled = harness.reconcile(CLUSTER)
    daemon.interrupt()
    daemon.end()
    back = harness.move(CLUSTER, NEW, "--with-secrets")

    assert sorted(there[:-1]) == sorted(back[:-1]) == MOVED
    assert [plans[name]["decision"] for name in STATEFUL] == ["in sync", "in sync"]
    assert [plan["writes"] for plan in plans.values()] == [[], [], [], []]
    assert reconciled == UNCHANGED
    assert harness.reconcile(NEW) == UNCHANGED
    assert explained == harness.explained(CLUSTER) == harness.explained(NEW)
    assert set(harness.requests) == {"GET"}
    assert plans.keys() == set(NAMES)
    assert harness.has_passwords == (True, True)


def test_while_a_controller_runs_a_cluster_can_be_exported_but_neither_paused_nor_imported_into(
    harness: TransferHarness, namespace: str
) -> None:
    harness.declare()
    harness.move(OLD, CLUSTER, "--with-secrets")
    daemon = harness.workspace.daemon(before=("--store", f"{CLUSTER}?namespace={namespace}"))

    copied = harness.workspace.run("--store", CLUSTER, "export", "-n", namespace, "--to", "copy.yaml")
    paused = harness.workspace.run("--store", CLUSTER, "export", "-n", namespace, "--pause")
    filled = harness.workspace.run("--store", CLUSTER, "import", "-f", "copy.yaml")
    daemon.interrupt()
    daemon.end()

    assert copied.stderr.splitlines()[0].startswith(
        "a controller is running for this store: this is a copy of one moment"
    )
    assert (copied.returncode, paused.returncode, filled.returncode) == (0, 1, 1)
    assert paused.stderr.startswith("error: a controller is running for this store, and would go on: stop it first")
    assert filled.stderr.startswith(
        "error: a controller is running for this store, and would take steps before all is here"
    )
