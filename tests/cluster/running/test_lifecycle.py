"""A bucket's life with kubectl as its user's hand, and the real `setpoint run` looking after it."""

import json
import re
from typing import Any

from setpoint.localcloud.faults import FailRequest
from soak.fleet.process import RunProcess
from tests.cluster.polling import until
from tests.cluster.running.manifests import bucket, bucket_path
from tests.cluster.running.controller_harness import Site

REQUESTED = "setpoint.dev/reconcile-requested-at"


def _made(site: Site, name: str, **annotations: str) -> str:
    """A bucket that is declared and ready: what kubectl calls it."""
    site.kubectl.apply(bucket(name, **annotations))
    site.kubectl.until_ready(f"storagebucket/{name}")
    return f"storagebucket/{name}"


def test_what_is_applied_gets_ready_and_can_be_waited_for(busy_site: Site) -> None:
    _made(busy_site, "applied")

    assert busy_site.live(bucket_path("applied"))["location"] == "EU"
    header, line = busy_site.kubectl("get", "storagebucket", "applied").splitlines()
    assert re.split(r"\s{2,}", header.strip()) == ["NAME", "READY", "REASON", "STATUS AGE", "AGE"]
    assert line.split()[:3] == ["applied", "True", "UpToDate"]


def test_what_happened_is_told_by_events(busy_site: Site) -> None:
    target = _made(busy_site, "told")

    def told() -> Any:
        return json.loads(busy_site.kubectl("events", f"--for={target}", "-o", "json"))["items"]

    until(lambda: "Created" in {one["reason"] for one in told()})
    assert {(one["reason"], one["type"], one["message"]) for one in told()} == {
        ("Updating", "Normal", "Update in progress: first look"),
        ("UpToDate", "Normal", "The resource is up to date"),
        ("Created", "Normal", "created with spec.location, metadata.labels.managed-by-cnrm"),
    }
    assert "created with spec.location" in busy_site.kubectl("describe", target)


def test_a_patch_is_followed(busy_site: Site) -> None:
    target = _made(busy_site, "patched")

    busy_site.kubectl("patch", target, "--type=merge", "-p", '{"spec": {"storageClass": "NEARLINE"}}')
    until(lambda: busy_site.live(bucket_path("patched"))["storageClass"] == "NEARLINE")
    busy_site.kubectl("wait", target, "--for=jsonpath={.status.observedGeneration}=2", "--timeout=240s")

    assert [one.method for one in busy_site.writes_to(bucket_path("patched"))] == ["PATCH"]


def test_what_is_edited_by_hand_is_followed(busy_site: Site) -> None:
    target = _made(busy_site, "edited")

    edited = busy_site.kubectl.run("edit", target, editor="sed -i 's/^  location: EU$/&\\n  storageClass: COLDLINE/'")
    until(lambda: busy_site.live(bucket_path("edited"))["storageClass"] == "COLDLINE")

    assert edited.returncode == 0, edited.stderr


def test_a_request_is_taken_up_at_once_and_puts_back_what_drifted(busy_site: Site) -> None:
    target = _made(busy_site, "drifted")
    busy_site.in_cloud(lambda cloud: cloud.edit("/b/drifted", {"website": {"mainPageSuffix": "index.html"}}))

    busy_site.kubectl("annotate", target, f"{REQUESTED}=now")
    busy_site.kubectl("wait", target, "--for=jsonpath={.status.lastHandledReconcileAt}=now", "--timeout=240s")

    assert "website" not in busy_site.live(bucket_path("drifted"))
    assert busy_site.kubectl.get(target)["status"]["setpoint"]["step"]["decision"] == "drifted"


def test_a_deletion_waits_until_the_object_is_gone(busy_site: Site) -> None:
    target = _made(busy_site, "deleted")
    busy_site.in_cloud(lambda cloud: cloud.inject(FailRequest(503, "DELETE", "/b/deleted", times=2, retry_after=1)))

    busy_site.kubectl("delete", target, "--wait=false")
    marked = busy_site.kubectl.get(target)
    busy_site.kubectl("wait", target, "--for=delete", "--timeout=240s")

    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["finalizers"] == ["cnrm.cloud.google.com/finalizer"]
    assert busy_site.kubectl.get(target) is None
    assert busy_site.live(bucket_path("deleted")) is None


def test_what_is_abandoned_stays_in_the_cloud(busy_site: Site) -> None:
    target = _made(busy_site, "abandoned", deletion_policy="abandon")

    busy_site.kubectl("delete", target, "--timeout=240s")

    assert busy_site.live(bucket_path("abandoned"))["name"] == "abandoned"
    assert busy_site.writes_to(bucket_path("abandoned")) == []


def test_the_spec_is_never_written_and_the_status_only_by_its_subresource(busy_site: Site) -> None:
    manifest = bucket("untouched")
    busy_site.kubectl.apply(manifest)
    declared = busy_site.kubectl.get("storagebucket/untouched")
    busy_site.kubectl.until_ready("storagebucket/untouched")
    now = busy_site.kubectl.get("storagebucket/untouched")

    assert json.dumps(now["spec"]) == json.dumps(declared["spec"]) == json.dumps(manifest["spec"])
    assert (declared["metadata"]["generation"], now["metadata"]["generation"]) == (1, 1)
    assert now["metadata"]["annotations"] == declared["metadata"]["annotations"]
    assert _owned_by("setpoint-controller", now) == {
        "": {"f:metadata": {"f:finalizers"}},
        "status": {"f:status": set(now["status"])},
    }


def _owned_by(manager: str, tree: Any) -> dict[str, Any]:
    """What a manager owns, by the subresource through which it was written: two levels of names."""
    entries = [one for one in tree["metadata"]["managedFields"] if one["manager"] == manager]
    return {one.get("subresource", ""): _names(one["fieldsV1"]) for one in entries}


def _names(fields: Any) -> dict[str, set[str]]:
    status = {name.removeprefix("f:") for name in fields.get("f:status", ()) if name != "."}
    return {name: status if name == "f:status" else set(members) for name, members in fields.items()}


def test_passes_that_find_nothing_to_do_ask_nothing_of_the_cluster_and_only_look_at_the_cloud(
    busy_site: Site, keeper: RunProcess
) -> None:
    target = _made(busy_site, "quiet", reconcile_interval_in_seconds="1")
    _until_looked_at(busy_site, "quiet", 2)
    before, asked, written = busy_site.kubectl.get(target), busy_site.asked(), busy_site.in_cloud(_written)

    _until_looked_at(busy_site, "quiet", 5)

    assert [one for one in busy_site.asked()[len(asked) :] if one not in asked] == []
    assert busy_site.in_cloud(_written) == written
    assert busy_site.kubectl.get(target) == before
    assert keeper.bugs() == []
    busy_site.kubectl("delete", target, "--timeout=240s")


def test_what_is_asked_of_the_cluster_is_counted_in_the_metrics(busy_site: Site, keeper: RunProcess) -> None:
    page = keeper.metrics()
    host = busy_site.proxy.url.removeprefix("http://")

    assert f'rest_client_requests_total{{code="200",host="{host}",method="PUT"}}' in page
    assert f'setpoint_api_calls_total{{project="",quota="writes",service="kubernetes {host}"}}' in page


def _written(cloud: Any) -> int:
    return len(cloud.written)


def _until_looked_at(site: Site, name: str, times: int) -> None:
    """Returns when the cloud was asked for the bucket so many times more."""

    def looks() -> int:
        return site.in_cloud(lambda cloud: sum(one.path == bucket_path(name) for one in cloud.journal.entries))

    wanted = looks() + times
    until(lambda: looks() >= wanted)
