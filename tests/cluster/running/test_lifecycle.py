"""Buckets that are managed by kubectl and reconciled by `setpoint run`."""

import json
import re
from typing import Any

from setpoint.localcloud.faults import FailRequest
from soak.fleet.process import RunProcess
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket, bucket_path, quickly_resynced

REQUESTED = "setpoint.dev/reconcile-requested-at"


def _create_bucket(harness: ControllerHarness, name: str, **annotations: str) -> str:
    """Creates a bucket and waits until it is ready; the argument for kubectl."""
    harness.kubectl.apply(bucket(name, **annotations))
    harness.kubectl.until_ready(f"storagebucket/{name}")
    return f"storagebucket/{name}"


def test_an_applied_resource_becomes_ready(shared_harness: ControllerHarness) -> None:
    _create_bucket(shared_harness, "applied")

    assert shared_harness.live(bucket_path("applied"))["location"] == "EU"
    header, line = shared_harness.kubectl("get", "storagebucket", "applied").splitlines()
    assert re.split(r"\s{2,}", header.strip()) == ["NAME", "READY", "REASON", "STATUS AGE", "AGE"]
    assert line.split()[:3] == ["applied", "True", "UpToDate"]


def test_a_creation_is_reported_by_events(shared_harness: ControllerHarness) -> None:
    target = _create_bucket(shared_harness, "reported")

    def events() -> Any:
        about = "--field-selector=involvedObject.name=reported"
        return json.loads(shared_harness.kubectl("get", "events", about, "-o", "json"))["items"]

    until(lambda: "Created" in {one["reason"] for one in events()})
    assert {(one["reason"], one["type"], one["message"]) for one in events()} == {
        (
            "Created",
            "Normal",
            "created with spec.location, spec.storageClass, spec.uniformBucketLevelAccess, spec.lifecycleRule, "
            "metadata.labels.managed-by-cnrm",
        ),
    }
    assert "created with spec.location" in shared_harness.kubectl("describe", target)


def test_a_patch_is_reconciled(shared_harness: ControllerHarness) -> None:
    target = _create_bucket(shared_harness, "patched")

    shared_harness.kubectl("patch", target, "--type=merge", "-p", '{"spec": {"storageClass": "NEARLINE"}}')
    until(lambda: shared_harness.live(bucket_path("patched"))["storageClass"] == "NEARLINE")
    shared_harness.kubectl("wait", target, "--for=jsonpath={.status.observedGeneration}=2", "--timeout=240s")

    assert [one.method for one in shared_harness.writes_to(bucket_path("patched"))] == ["PATCH"]


def test_a_kubectl_edit_is_reconciled(shared_harness: ControllerHarness) -> None:
    target = _create_bucket(shared_harness, "edited")

    edited = shared_harness.kubectl.run(
        "edit", target, editor="sed -i 's/^  location: EU$/&\\n  storageClass: COLDLINE/'"
    )
    until(lambda: shared_harness.live(bucket_path("edited"))["storageClass"] == "COLDLINE")

    assert edited.returncode == 0, edited.stderr


def test_a_requested_reconcile_reverts_drift(shared_harness: ControllerHarness) -> None:
    target = _create_bucket(shared_harness, "drifted")
    shared_harness.in_cloud(lambda cloud: cloud.edit("/b/drifted", {"website": {"mainPageSuffix": "index.html"}}))

    shared_harness.kubectl("annotate", target, f"{REQUESTED}=now")
    shared_harness.kubectl("wait", target, "--for=jsonpath={.status.lastHandledReconcileAt}=now", "--timeout=240s")

    assert "website" not in shared_harness.live(bucket_path("drifted"))
    assert shared_harness.kubectl.get(target)["status"]["setpoint"]["step"]["decision"] == "drifted"


def test_a_deletion_waits_until_the_object_is_gone(shared_harness: ControllerHarness) -> None:
    target = _create_bucket(shared_harness, "deleted")
    shared_harness.in_cloud(
        lambda cloud: cloud.inject(FailRequest(503, "DELETE", "/b/deleted", times=1_000, retry_after=1))
    )

    shared_harness.kubectl("delete", target, "--wait=false")
    marked = shared_harness.kubectl.get(target)
    shared_harness.in_cloud(lambda cloud: cloud.faults.clear())
    shared_harness.kubectl("wait", target, "--for=delete", "--timeout=240s")

    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["finalizers"] == ["cnrm.cloud.google.com/finalizer"]
    assert shared_harness.kubectl.get(target) is None
    assert shared_harness.live(bucket_path("deleted")) is None


def test_an_abandoned_object_stays_in_the_cloud(shared_harness: ControllerHarness) -> None:
    target = _create_bucket(shared_harness, "abandoned", deletion_policy="abandon")

    shared_harness.kubectl("delete", target, "--timeout=240s")

    assert shared_harness.live(bucket_path("abandoned"))["name"] == "abandoned"
    assert shared_harness.writes_to(bucket_path("abandoned")) == []


def test_an_unknown_deletion_policy_keeps_the_object_and_the_finalizer_until_it_is_corrected(
    shared_harness: ControllerHarness,
) -> None:
    target, policy = _create_bucket(shared_harness, "undecided"), "cnrm.cloud.google.com/deletion-policy"
    shared_harness.kubectl("annotate", target, f"{policy}=ABANDON")
    shared_harness.kubectl("delete", target, "--wait=false")
    reason = "{.status.conditions[?(@.type=='Ready')].reason}"
    shared_harness.kubectl("wait", target, f"--for=jsonpath={reason}=DeleteFailed", "--timeout=240s")
    held = shared_harness.kubectl.get(target)

    shared_harness.kubectl("annotate", "--overwrite", target, f"{policy}=abandon")
    shared_harness.kubectl("wait", target, "--for=delete", "--timeout=240s")

    (ready,) = held["status"]["conditions"]
    assert (ready["status"], ready["message"]) == (
        "False",
        f"Delete call failed: {policy} is 'ABANDON': write abandon or delete, in lower case; nothing is deleted until "
        "that is corrected",
    )
    assert held["metadata"]["finalizers"] == ["cnrm.cloud.google.com/finalizer"]
    assert shared_harness.live(bucket_path("undecided"))["name"] == "undecided"
    assert shared_harness.writes_to(bucket_path("undecided")) == []


def test_an_annotation_without_effect_is_a_condition_and_an_event(shared_harness: ControllerHarness) -> None:
    target = _create_bucket(shared_harness, "warned", state_into_spec="absent")

    shared_harness.kubectl("wait", target, "--for=condition=Warned", "--timeout=240s")

    found = {one["type"]: one for one in shared_harness.kubectl.get(target)["status"]["conditions"]}
    start = "cnrm.cloud.google.com/state-into-spec has no effect on a StorageBucket: "
    assert (found["Ready"]["status"], found["Warned"]["reason"]) == ("True", "AnnotationIgnored")
    assert found["Warned"]["message"].startswith(start)
    until(lambda: "AnnotationIgnored" in shared_harness.kubectl("events", f"--for={target}", "--types=Warning"))


def test_the_spec_is_never_written_and_the_status_only_by_its_subresource(shared_harness: ControllerHarness) -> None:
    manifest = bucket("untouched")
    shared_harness.kubectl.apply(manifest)
    declared = shared_harness.kubectl.get("storagebucket/untouched")
    shared_harness.kubectl.until_ready("storagebucket/untouched")
    now = shared_harness.kubectl.get("storagebucket/untouched")

    assert json.dumps(now["spec"]) == json.dumps(declared["spec"]) == json.dumps(manifest["spec"])
    assert (declared["metadata"]["generation"], now["metadata"]["generation"]) == (1, 1)
    claim = {"setpoint.dev/claim": f"{now['metadata']['uid']} {now['status']['setpoint']['location']}"}
    assert now["metadata"]["annotations"] == declared["metadata"]["annotations"] | claim
    assert _owned_by("setpoint-controller", now) == {
        "": {"f:metadata": {"f:annotations", "f:finalizers"}},
        "status": {"f:status": set(now["status"])},
    }


def _owned_by(manager: str, tree: Any) -> dict[str, Any]:
    """The fields of a manager by subresource: two levels of names."""
    entries = [one for one in tree["metadata"]["managedFields"] if one["manager"] == manager]
    return {one.get("subresource", ""): _names(one["fieldsV1"]) for one in entries}


def _names(fields: Any) -> dict[str, set[str]]:
    status = {name.removeprefix("f:") for name in fields.get("f:status", ()) if name != "."}
    return {name: status if name == "f:status" else set(members) for name, members in fields.items()}


def test_resyncs_without_drift_send_no_request_to_the_cluster_and_write_nothing(
    shared_harness: ControllerHarness, controller: RunProcess
) -> None:
    name = quickly_resynced(shared_harness.kubectl.namespace)
    target = _create_bucket(shared_harness, name, reconcile_interval_in_seconds="1")
    shared_harness.until_observed(bucket_path(name), 2)
    before, requests = shared_harness.kubectl.get(target), shared_harness.requests()
    written = shared_harness.in_cloud(_written)

    shared_harness.until_observed(bucket_path(name), 5)

    assert [one for one in shared_harness.requests()[len(requests) :] if one not in requests] == []
    assert shared_harness.in_cloud(_written) == written
    assert shared_harness.kubectl.get(target) == before
    assert controller.bugs() == []
    shared_harness.kubectl("delete", target, "--timeout=240s")


def test_requests_to_the_cluster_are_counted_in_the_metrics(
    shared_harness: ControllerHarness, controller: RunProcess
) -> None:
    page = controller.metrics()
    host = shared_harness.proxy.url.removeprefix("http://")

    assert f'rest_client_requests_total{{code="200",host="{host}",method="PUT"}}' in page
    assert f'setpoint_api_calls_total{{project="",quota="writes",service="kubernetes {host}"}}' in page


def _written(cloud: Any) -> int:
    return len(cloud.written)


def test_a_status_that_another_writer_changed_is_restored_at_once(shared_harness: ControllerHarness) -> None:
    """Not with the next resync, and by one write."""
    harness, target = shared_harness, _create_bucket(shared_harness, "restored")
    before, requests = harness.kubectl.get(target)["status"], len(harness.requests())
    wrong = {"conditions": [{**before["conditions"][0], "status": "False", "reason": "Wrong"}], "selfLink": "elsewhere"}

    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": wrong}))
    harness.kubectl("patch", target, *patch)
    until(lambda: harness.kubectl.get(target)["status"]["selfLink"] == before["selfLink"])

    after = harness.kubectl.get(target)["status"]
    for one in (before, after):
        assert len(one["setpoint"].pop("digest")) == 64
    assert [(one["status"], one["reason"]) for one in after["conditions"]] == [("True", "UpToDate")]
    assert {name: after[name] for name in after if name != "conditions"} == {
        name: before[name] for name in before if name != "conditions"
    }
    path = f"/namespaces/{harness.kubectl.namespace}/storagebuckets/restored"
    writes = [one.path for one in harness.requests(requests) if one.method != "GET" and path in one.path]
    assert [one.rpartition("/")[2] for one in writes] == ["status"]
