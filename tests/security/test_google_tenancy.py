"""A tenant reaches the Google project of its namespace alone, and no object that another resource manages."""

import json
from typing import Any

import pytest

from tests.cluster.polling import until
from tests.cluster.running.kubectl import Kubectl
from tests.security.tenant_cluster import TenantCluster, TenantUser

SQL, STORAGE = "sql.cnrm.cloud.google.com/v1beta1", "storage.cnrm.cloud.google.com/v1beta1"
PROJECT = "cnrm.cloud.google.com/project-id"
INSTANCE: dict[str, Any] = {
    "databaseVersion": "MYSQL_8_0",
    "region": "europe-west1",
    "settings": {"tier": "db-custom-1-3840"},
}


def declared(kind: str, name: str, spec: Any, **annotations: str) -> Any:
    own = {f"cnrm.cloud.google.com/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata = {"name": name, "annotations": own}
    return {"apiVersion": STORAGE if kind == "StorageBucket" else SQL, "kind": kind, "metadata": metadata, "spec": spec}


def bucket(name: str, resource_id: str | None = None, **annotations: str) -> Any:
    named = {} if resource_id is None else {"resourceID": resource_id}
    return declared("StorageBucket", name, {"location": "EU", **named}, **annotations)


def make_bucket(tenants: TenantCluster, project: str, name: str) -> None:
    """A bucket of a project, which no resource manages."""
    body = {"name": name, "location": "EU"}
    answer = tenants.in_cloud(lambda cloud: cloud.call("POST", f"/storage/v1/b?project={project}", body))
    assert answer.status == 200, answer


def live(tenants: TenantCluster, path: str) -> Any:
    return tenants.in_cloud(lambda cloud: cloud.stored(path))


def buckets_of(tenants: TenantCluster, project: str) -> list[str]:
    answer = tenants.in_cloud(lambda cloud: cloud.call("GET", f"/storage/v1/b?project={project}"))
    assert answer.body is not None
    return [one["name"] for one in answer.body.get("items", ())]


def asked_for(tenants: TenantCluster, word: str) -> list[str]:
    """The requests that name it, reads too."""
    return tenants.in_cloud(lambda cloud: [one.path for one in cloud.journal.entries if word in one.path])


def writes(tenants: TenantCluster, name: str) -> list[str]:
    return tenants.in_cloud(lambda cloud: [one.method for one in cloud.writes_to(f"/storage/v1/b/{name}")])


@pytest.fixture(scope="module")
def partner(tenants: TenantCluster) -> TenantUser:
    """Alice in a second namespace, which has the project of Bob's."""
    namespace = tenants.access.new_namespace(is_tenant=False, project="project-bob")
    admin = Kubectl(tenants.program, tenants.access, namespace)
    admin("create", "rolebinding", "editor", "--clusterrole=edit", "--user=alice")
    tenants.access.until_permitted("alice", "create", "storagebuckets.storage.cnrm.cloud.google.com", namespace)
    return TenantUser("alice", namespace, tenants.program, tenants.access)


def test_the_namespace_has_the_project_and_its_tenant_cannot_change_that(tenants: TenantCluster) -> None:
    alice = tenants.alice
    alice.apply(bucket("alices-own"))
    alice.until_reason("storagebucket/alices-own", "UpToDate")
    changed = alice.kubectl("annotate", "namespace", alice.namespace, f"{PROJECT}=project-bob", "--overwrite")

    assert "alices-own" in buckets_of(tenants, "project-alice")
    assert changed.returncode == 1
    assert "forbidden" in changed.stderr


@pytest.mark.parametrize("is_managed", [True, False], ids=["managed", "unmanaged"])
def test_a_bucket_of_another_project_is_neither_changed_nor_deleted(tenants: TenantCluster, is_managed: bool) -> None:
    alice, bob, name = tenants.alice, tenants.bob, f"vault-{is_managed}".lower()
    if is_managed:
        bob.apply(bucket(name))
        bob.until_reason(f"storagebucket/{name}", "UpToDate")
    else:
        make_bucket(tenants, "project-bob", name)
    before, written = live(tenants, f"/storage/v1/b/{name}"), writes(tenants, name)
    alice.apply(bucket(f"theft-{name}", name, force_destroy="true"))

    message = alice.until_reason(f"storagebucket/theft-{name}", "ProjectRefused")
    assert alice.kubectl("delete", f"storagebucket/theft-{name}", "--timeout=240s").returncode == 0
    assert (live(tenants, f"/storage/v1/b/{name}"), writes(tenants, name)) == (before, written)
    assert "another project than 'project-alice'" in message
    assert bob.namespace not in message


FOREIGN = {
    "annotation": declared("SQLInstance", "x", INSTANCE, project_id="project-bob"),
    "bucket-annotation": bucket("x", "crown-annotation", project_id="project-bob"),
    "database": declared("SQLDatabase", "x", {"instanceRef": {"external": "projects/project-bob/instances/crown"}}),
    "user": declared(
        "SQLUser",
        "x",
        {
            "instanceRef": {"external": "https://sqladmin.googleapis.com/v1/projects/project-bob/instances/crown"},
            "password": {"value": "Attack-1"},
        },
    ),
    "user-annotation": declared("SQLUser", "x", {"instanceRef": {"external": "crown"}}, project_id="project-bob"),
    "replica": declared("SQLInstance", "x", {**INSTANCE, "masterInstanceRef": {"external": "project-bob:crown"}}),
    "clone": declared(
        "SQLInstance",
        "x",
        {**INSTANCE, "cloneSource": {"sqlInstanceRef": {"external": "projects/project-bob/instances/crown"}}},
    ),
    "network": declared(
        "SQLInstance",
        "x",
        {
            **INSTANCE,
            "settings": {
                **INSTANCE["settings"],
                "ipConfiguration": {"privateNetworkRef": {"external": "projects/project-bob/global/networks/crown"}},
            },
        },
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_resource_that_names_another_project_is_refused_before_any_request(tenants: TenantCluster, name: str) -> None:
    alice, manifest = tenants.alice, json.loads(json.dumps(FOREIGN[name]))
    manifest["metadata"]["name"] = f"foreign-{name}"
    target = f"{manifest['kind'].lower()}/foreign-{name}"
    alice.apply(manifest)

    message = alice.until_reason(target, "ProjectRefused")
    assert "'project-bob'" in message
    assert "'project-alice'" in message
    assert "an administrator" in message
    assert [one for one in asked_for(tenants, "crown") if "project-bob" in one] == []
    assert asked_for(tenants, f"foreign-{name}") == []


def test_an_object_of_the_same_project_has_one_resource(tenants: TenantCluster, partner: TenantUser) -> None:
    bob = tenants.bob
    bob.apply(bucket("ledger"))
    bob.until_reason("storagebucket/ledger", "UpToDate")
    partner.apply(
        declared("StorageBucket", "grab", {"location": "EU", "resourceID": "ledger", "versioning": {"enabled": True}})
    )
    bob.apply(declared("StorageBucket", "twin", {"location": "EU", "resourceID": "ledger"}))

    theirs = partner.until_reason("storagebucket/grab", "ManagementConflict")
    own = bob.until_reason("storagebucket/twin", "ManagementConflict")
    assert partner.kubectl("delete", "storagebucket/grab", "--timeout=240s").returncode == 0
    assert bob.kubectl("delete", "storagebucket/twin", "--timeout=240s").returncode == 0
    for message in (theirs, own):
        assert f"is managed by StorageBucket {bob.namespace}/ledger already" in message
    assert (writes(tenants, "ledger"), live(tenants, "/storage/v1/b/ledger") is None) == ([], False)


def test_of_resources_that_come_at_once_one_alone_makes_the_object(tenants: TenantCluster, partner: TenantUser) -> None:
    contenders = {f"race-{number}": (tenants.bob, partner)[number % 2] for number in range(4)}
    for name, user in contenders.items():
        user.apply(bucket(name, "prize"))

    def reasons() -> list[str]:
        ready = [user.ready(f"storagebucket/{name}") for name, user in contenders.items()]
        return sorted(one.get("reason", "") for one in ready)

    until(lambda: reasons() == ["ManagementConflict"] * 3 + ["UpToDate"])
    written = tenants.in_cloud(lambda cloud: list(cloud.written))
    assert [one.status for one in written if isinstance(one.body, dict) and one.body.get("name") == "prize"] == [200]


def test_a_change_of_the_namespace_is_followed_at_once(tenants: TenantCluster) -> None:
    namespace = tenants.access.new_namespace(is_tenant=False, project="project-first")
    admin = Kubectl(tenants.program, tenants.access, namespace)
    admin.apply(bucket("moving", project_id="project-second"))
    user = TenantUser("admin", namespace, tenants.program, tenants.access)
    user.until_reason("storagebucket/moving", "ProjectRefused")

    admin("annotate", "namespace", namespace, f"{PROJECT}=project-second", "--overwrite")

    user.until_reason("storagebucket/moving", "UpToDate")
    assert buckets_of(tenants, "project-second") == ["moving"]


def test_a_status_that_names_another_project_is_not_followed(tenants: TenantCluster) -> None:
    """Tenants cannot write a status; what a writer with more rights puts there is not trusted either."""
    alice = tenants.alice
    make_bucket(tenants, "project-bob", "archive")
    alice.apply(bucket("forged", setpoint="x"))
    alice.until_reason("storagebucket/forged", "UpToDate")
    forged = {"status": {"setpoint": {"location": "projects/project-bob/buckets/archive", "cookie": None}}}
    as_tenant = alice.kubectl(
        "patch", "storagebucket/forged", "--subresource=status", "--type=merge", "-p", json.dumps(forged)
    )
    admin = Kubectl(tenants.program, tenants.access, alice.namespace)
    admin("patch", "storagebucket/forged", "--subresource=status", "--type=merge", "-p", json.dumps(forged))
    assert alice.kubectl("delete", "storagebucket/forged", "--wait=false").returncode == 0

    # The record that the controller has seen counts: the object of the resource goes, and no other.
    until(lambda: alice.get("storagebucket/forged") is None)
    assert (as_tenant.returncode, "forbidden" in as_tenant.stderr) == (1, True)
    assert asked_for(tenants, "/b/archive") == []
    assert live(tenants, "/storage/v1/b/forged") is None
    assert live(tenants, "/storage/v1/b/archive") is not None
