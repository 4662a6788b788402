"""Commands on resources in a cluster, with and without a running controller."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from setpoint.library.command_document import CommandDocument
from tests.cluster.access import ADMIN
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket, bucket_path, database, instance, instance_path

NO_CONTROLLER = "no controller is running for this cluster"


def _written(harness: ControllerHarness, manifest: Any) -> str:
    """The file of a manifest, with the namespace of the harness."""
    metadata = {**manifest["metadata"], "namespace": harness.kubectl.namespace}
    file = Path(harness.folder, f"{metadata['name']}.json")
    file.write_text(json.dumps({**manifest, "metadata": metadata}), encoding="utf-8")
    return str(file)


def _printed(harness: ControllerHarness, *arguments: str, user: str = ADMIN) -> tuple[int, str]:
    """The exit code and the output, in which the namespace is called `here`."""
    done = harness.setpoint(*arguments, user=user)
    return done.returncode, (done.stdout + done.stderr).replace(harness.kubectl.namespace, "here")


def _names(harness: ControllerHarness, command: str, bucket_name: str) -> bool:
    """Whether the command shows the bucket."""
    code, printed = _printed(harness, command, f"StorageBucket/{bucket_name}")
    assert code == 0, printed
    return bucket_name in printed


def _deleted(name: str) -> str:
    """What the deletion of a bucket prints."""
    return f"StorageBucket here/{name} deleted: projects/some-project/buckets/{name}\ndeleted 1\n"


def test_a_resource_is_planned_applied_shown_and_deleted_by_commands(shared_harness: ControllerHarness) -> None:
    harness, place = shared_harness, ("-n", shared_harness.kubectl.namespace)
    file = _written(harness, bucket("by-hand"))

    assert _printed(harness, "plan", "-f", file)[0] == 2
    assert _printed(harness, "apply", "-f", file) == (0, "StorageBucket here/by-hand created\ncreated 1\n")
    assert _printed(harness, "plan", "-f", file)[0] == 0
    assert _printed(harness, "plan", "StorageBucket/by-hand", *place)[0] == 0
    assert "True    UpToDate" in _printed(harness, "get", "StorageBucket/by-hand", *place)[1]
    until(lambda: "created with spec.location" in _printed(harness, "events", "StorageBucket/by-hand", *place)[1])
    code, explained = _printed(harness, "explain", "StorageBucket/by-hand", *place)
    assert code == 0
    assert '  wrote: create\n    spec.location: unset → "EU" (spec)\n' in explained
    assert "next step: by the running process, at the latest" in explained
    code, planned = _printed(harness, "delete", "-f", file, "--dry-run")
    assert (code, planned.replace(" would be", "")) == (0, f"{_deleted('by-hand')[:-1]} (dry run)\n")
    assert _printed(harness, "delete", "-f", file) == (0, _deleted("by-hand"))
    assert harness.live(bucket_path("by-hand")) is None
    code, missing = _printed(harness, "delete", "-f", file)
    assert (code, missing.splitlines()[-1]) == (1, "not found 1")
    assert missing.startswith("StorageBucket here/by-hand not found: it is not declared here")
    assert _printed(harness, "delete", "-f", file, "--ignore-not-found")[0] == 0


def test_a_grant_is_applied_shown_and_deleted_by_commands_and_nothing_reconciles_it(
    shared_harness: ControllerHarness,
) -> None:
    harness, place = shared_harness, ("-n", shared_harness.kubectl.namespace)
    some = {"group": "setpoint.dev", "kind": "KubernetesObject"}
    grant = {"apiVersion": "setpoint.dev/v1alpha1", "kind": "ReferenceGrant", "metadata": {"name": "to-objects"}}
    file = _written(harness, {**grant, "spec": {"from": [{**some, "namespace": "other"}], "to": [some]}})
    wrong = _written(harness, {**grant, "metadata": {"name": "wrong"}, "spec": {"from": [some], "to": [some]}})

    assert _printed(harness, "apply", "-f", file)[0] == 0
    code, shown = _printed(harness, "get", "ReferenceGrant/to-objects", "-o", "json", *place)
    assert (code, json.loads(shown)["spec"]["to"]) == (0, [some])
    code, refused = _printed(harness, "apply", "-f", wrong)
    assert code == 1
    assert "spec.from[0].namespace" in refused
    assert _printed(harness, "delete", "ReferenceGrant/to-objects", *place)[0] == 0
    assert harness.kubectl.get("referencegrant/to-objects") is None


def _document(harness: ControllerHarness, *arguments: str) -> dict[str, Any]:
    """What the command prints for programs, with the namespace called `here`: its schema knows every member."""
    data: dict[str, Any] = json.loads(_printed(harness, *arguments, "-o", "json")[1])
    assert msgspec.to_builtins(msgspec.convert(data, CommandDocument)) == data
    return data


def test_the_documents_for_programs_are_those_of_a_local_command(shared_harness: ControllerHarness) -> None:
    file = _written(shared_harness, bucket("for-programs"))

    applied = _document(shared_harness, "apply", "-f", file)
    deleted = _document(shared_harness, "delete", "-f", file)

    name = {"group": "storage.cnrm.cloud.google.com", "kind": "StorageBucket", "namespace": "here"}
    location = "projects/some-project/buckets/for-programs"
    (created,) = applied.pop("results")
    assert applied == {"command": "apply", "summary": {"created": 1}, "exitCode": 0, "warnings": []}
    assert {"path": "spec.location", "rule": "spec", "after": "EU"} in created.pop("changes")
    ready = {"outcome": "created", "reason": "UpToDate", "message": "", "location": location}
    assert created == {**name, "name": "for-programs", **ready}
    (gone,) = deleted.pop("results")
    assert deleted == {
        "command": "delete",
        "summary": {"deleted": 1},
        "exitCode": 0,
        "warnings": [],
        "dependants": [],
    }
    going = {"outcome": "deleted", "reason": "", "message": location, "changes": [], "location": location}
    assert gone == {**name, "name": "for-programs", **going}


def test_dependants_are_named_and_deleted_before_what_they_need(shared_harness: ControllerHarness) -> None:
    harness, place = shared_harness, ("-n", shared_harness.kubectl.namespace)
    files = [_written(harness, one) for one in (instance("needed"), database("needing", "needed"))]
    harness.in_cloud(lambda cloud: cloud.clock.release())
    for file in files:
        assert _printed(harness, "apply", "-f", file)[0] == 0

    shown = _printed(harness, "delete", "--dry-run", "SQLInstance/needed", *place)[1].splitlines()
    code, deleted = _printed(harness, "delete", "SQLInstance/needed", "SQLDatabase/needing", *place)

    assert shown[0] == "SQLDatabase here/needing refers to SQLInstance here/needed by spec.instanceRef, and stays"
    assert shown[1] == "SQLInstance here/needed would be deleted: projects/some-project/instances/needed"
    lines = [line.split()[1] for line in deleted.splitlines() if " deleted: " in line]
    assert (code, lines) == (0, ["here/needing", "here/needed"])
    assert deleted.splitlines()[-1] == "deleted 2"
    assert harness.live(instance_path("needed")) is None


def test_reconcile_reverts_drift(shared_harness: ControllerHarness) -> None:
    file = _written(shared_harness, bucket("astray"))
    _printed(shared_harness, "apply", "-f", file)
    shared_harness.in_cloud(lambda cloud: cloud.edit("/b/astray", {"website": {"mainPageSuffix": "index.html"}}))
    planned = _printed(shared_harness, "plan", "-f", file)[0]
    reconciled = _printed(shared_harness, "reconcile", "-f", file)

    assert (planned, reconciled) == (2, (0, "StorageBucket here/astray updated\nupdated 1\n"))
    assert "website" not in shared_harness.live(bucket_path("astray"))
    place = ("-n", shared_harness.kubectl.namespace)
    explained = _printed(shared_harness, "explain", "StorageBucket/astray", *place)[1].splitlines()
    by = "by setpoint reconcile, requested by annotation setpoint.dev/reconcile-requested-at: drifted"
    assert explained[1].endswith(f", {by}")


def test_an_unchanged_apply_requests_a_reconcile(shared_harness: ControllerHarness) -> None:
    file = _written(shared_harness, bucket("again"))
    _printed(shared_harness, "apply", "-f", file)
    unchanged = _printed(shared_harness, "apply", "-f", file)
    shared_harness.in_cloud(lambda cloud: cloud.edit("/b/again", {"website": {"mainPageSuffix": "index.html"}}))

    assert unchanged == (0, "StorageBucket here/again unchanged\nunchanged 1\n")
    assert _printed(shared_harness, "apply", "-f", file) == (0, "StorageBucket here/again updated\nupdated 1\n")


def test_without_permission_for_leases_a_controller_is_assumed(shared_harness: ControllerHarness) -> None:
    kinds = "kbsconfigs,kubernetesobjects,sqldatabases,sqlinstances,sqlusers,storagebuckets,trusteeconfigs"
    kinds = f"{kinds},iampartialpolicies,iampolicies,iampolicymembers,iamserviceaccountkeys"
    verbs = "--verb=get,list,watch,create,patch,delete"
    shared_harness.kubectl("create", "role", "author", verbs, f"--resource={kinds}")
    shared_harness.kubectl("create", "rolebinding", "author", "--role=author", "--user=alice")
    buckets = "storagebuckets.storage.cnrm.cloud.google.com"
    shared_harness.kubectl.access.until_permitted("alice", "create", buckets, shared_harness.kubectl.namespace)
    file = _written(shared_harness, bucket("of-alice"))

    applied = _printed(shared_harness, "apply", "-f", file, user="alice")
    assert applied == (0, "StorageBucket here/of-alice created\ncreated 1\n")
    assert _printed(shared_harness, "delete", "-f", file, user="alice") == (0, _deleted("of-alice"))


def test_the_namespace_of_the_store_is_that_of_every_command(shared_harness: ControllerHarness) -> None:
    file = Path(shared_harness.folder, "at-home.json")
    file.write_text(json.dumps(bucket("at-home")), encoding="utf-8")

    assert _printed(shared_harness, "plan", "-f", str(file))[0] == 2
    assert _printed(shared_harness, "apply", "-f", str(file)) == (0, "StorageBucket here/at-home created\ncreated 1\n")
    for command in ("get", "describe", "explain", "events", "plan", "reconcile"):
        # Events are written behind the work.
        until(partial(_names, shared_harness, command, "at-home"))
    assert _printed(shared_harness, "delete", "StorageBucket/at-home", "--yes") == (0, _deleted("at-home"))
    assert _printed(shared_harness, "delete", "StorageBucket/at-home", "--yes")[0] == 1


def test_a_resource_of_another_namespace_than_the_store_is_refused(shared_harness: ControllerHarness) -> None:
    manifest = bucket("nowhere")
    file = Path(shared_harness.folder, "nowhere.json")
    file.write_text(json.dumps({**manifest, "metadata": {"name": "nowhere", "namespace": "default"}}), encoding="utf-8")

    code, printed = _printed(shared_harness, "apply", "-f", str(file))

    assert code == 1
    assert "StorageBucket default/nowhere: this store is the namespace here alone" in printed


def test_without_a_controller_a_resource_is_stored_and_waits(harness: ControllerHarness) -> None:
    file, place = _written(harness, bucket("alone")), ("-n", harness.kubectl.namespace)

    for command in (("apply", "-f", file), ("reconcile", "StorageBucket/alone", *place)):
        code, printed = _printed(harness, *command)
        assert (code, printed.startswith(NO_CONTROLLER)) == (3, True)
        assert "run `setpoint --store kubernetes run`, or `setpoint install`" in printed
    assert _printed(harness, "plan", "-f", file)[0] == 2
    assert "Unknown   NotLookedAt" in _printed(harness, "get", *place)[1]
    assert "no step has been taken yet" in _printed(harness, "explain", "StorageBucket/alone", *place)[1]

    harness.start_controller()
    harness.kubectl.until_ready("storagebucket/alone")
    assert _printed(harness, "apply", "-f", file) == (0, "StorageBucket here/alone unchanged\nunchanged 1\n")


def test_a_deletion_without_a_controller_waits_for_one(harness: ControllerHarness) -> None:
    file = _written(harness, bucket("hanging"))
    process = harness.start_controller()
    _printed(harness, "apply", "-f", file)
    process.stop()

    code, printed = _printed(harness, "delete", "-f", file)
    assert (code, printed.startswith(NO_CONTROLLER)) == (3, True)
    assert harness.kubectl.get("storagebucket/hanging")["metadata"]["deletionTimestamp"]

    process.start()
    harness.kubectl("wait", "storagebucket/hanging", "--for=delete", "--timeout=240s")
    assert harness.live(bucket_path("hanging")) is None
