"""Other writers of a resource in a cluster: what they take off or wipe comes back at once."""

import json
from typing import Any, Final

from setpoint.engine.state import is_status_edited
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket, bucket_path

FINALIZER: Final = "cnrm.cloud.google.com/finalizer"


def _create_bucket(harness: ControllerHarness, name: str, **annotations: str) -> str:
    """Creates a bucket and waits until it is ready; the argument for kubectl."""
    harness.kubectl.apply(bucket(name, **annotations))
    harness.kubectl.until_ready(f"storagebucket/{name}")
    return f"storagebucket/{name}"


def _finalizers(harness: ControllerHarness, target: str) -> Any:
    return harness.kubectl.get(target)["metadata"].get("finalizers", [])


# --- The finalizer ----------------------------------------------------------------------------------------------------


def test_a_finalizer_that_kubectl_replace_drops_is_put_back_and_holds_a_deletion(
    shared_harness: ControllerHarness,
) -> None:
    harness, target = shared_harness, _create_bucket(shared_harness, "replaced")
    kubectl = harness.kubectl
    kubectl("replace", "-f", "-", stdin=json.dumps(bucket("replaced")))
    until(lambda: _finalizers(harness, target) == [FINALIZER])
    until(lambda: "FinalizerRestored" in kubectl("events", f"--for={target}", "--types=Warning"))

    kubectl("delete", target, "--timeout=240s")

    assert harness.live(bucket_path("replaced")) is None
    assert harness.writes_to(bucket_path("replaced"))[-1].method == "DELETE"


def test_a_finalizer_that_was_taken_off_while_no_controller_ran_is_put_back(harness: ControllerHarness) -> None:
    """Also of a resource without resyncs, on which nothing else is done at the start."""
    kubectl, first = harness.kubectl, harness.start_controller()
    targets = [_create_bucket(harness, "daily"), _create_bucket(harness, "still", reconcile_interval_in_seconds="0")]
    first.stop()
    for target in targets:
        kubectl("patch", target, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')

    harness.start_controller(name="second")
    until(lambda: all(_finalizers(harness, target) == [FINALIZER] for target in targets))

    assert [one.method for name in ("daily", "still") for one in harness.writes_to(bucket_path(name))] == []


# --- The status -------------------------------------------------------------------------------------------------------


def _wipe(harness: ControllerHarness, target: str) -> None:
    """Another writer empties the status."""
    harness.kubectl(
        "patch", target, "--subresource=status", "--type=json", "-p", '[{"op": "remove", "path": "/status"}]'
    )


def _edit(harness: ControllerHarness, target: str, **members: Any) -> None:
    """Another writer sets members of the status."""
    patch = json.dumps({"status": members})
    harness.kubectl("patch", target, "--subresource=status", "--type=merge", "-p", patch)


def _is_ready(harness: ControllerHarness, target: str) -> bool:
    conditions = harness.kubectl.get(target).get("status", {}).get("conditions", [])
    return [(one["type"], one["status"]) for one in conditions] == [("Ready", "True")]


def test_a_status_that_was_wiped_is_back_at_once_with_the_location_of_its_object(
    shared_harness: ControllerHarness,
) -> None:
    harness, target = shared_harness, _create_bucket(shared_harness, "wiped")
    before = harness.kubectl.get(target)["status"]

    _wipe(harness, target)
    until(lambda: _is_ready(harness, target))

    after = harness.kubectl.get(target)["status"]
    assert after["setpoint"]["location"] == before["setpoint"]["location"]
    assert (after["lastModifiedCookie"], after["selfLink"]) == (before["lastModifiedCookie"], before["selfLink"])
    assert not is_status_edited(after)
    assert harness.writes_to(bucket_path("wiped")) == []
    harness.kubectl("delete", target, "--timeout=240s")
    assert harness.live(bucket_path("wiped")) is None


def test_no_second_object_is_made_when_the_status_is_wiped_and_the_spec_names_another(
    shared_harness: ControllerHarness,
) -> None:
    harness, target = shared_harness, _create_bucket(shared_harness, "first-name")
    moved = bucket("first-name")
    moved["spec"]["resourceID"] = "second-name"
    harness.kubectl.apply(moved)
    message = "{.status.conditions[?(@.type=='Ready')].message}"
    until(lambda: "cannot move to" in harness.kubectl("get", target, "-o", f"jsonpath={message}"))

    _wipe(harness, target)
    until(lambda: "cannot move to" in harness.kubectl("get", target, "-o", f"jsonpath={message}"))

    assert harness.kubectl.get(target)["status"]["setpoint"]["location"].endswith("/first-name")
    assert harness.live(bucket_path("second-name")) is None
    harness.kubectl("delete", target, "--timeout=240s")
    assert harness.live(bucket_path("first-name")) is None


def test_what_was_changed_while_no_controller_ran_is_restored_by_the_next(harness: ControllerHarness) -> None:
    kubectl, first = harness.kubectl, harness.start_controller()
    targets = [_create_bucket(harness, "busy"), _create_bucket(harness, "calm", reconcile_interval_in_seconds="0")]
    held, spoken = (_create_bucket(harness, name) for name in ("held", "spoken"))
    before = [kubectl.get(target)["status"] for target in targets]
    location = kubectl.get(held)["status"]["setpoint"]["location"]
    first.stop()
    for target in targets:
        _edit(harness, target, selfLink="elsewhere")
    for target in (held, spoken):
        _wipe(harness, target)
        kubectl("delete", target, "--wait=false")
    kubectl("annotate", spoken, "cnrm.cloud.google.com/deletion-policy=delete")

    harness.start_controller(name="second")
    until(
        lambda: [kubectl.get(target)["status"]["selfLink"] for target in targets] == [one["selfLink"] for one in before]
    )
    assert [kubectl.get(target)["status"]["conditions"] for target in targets] == [one["conditions"] for one in before]
    # Of one that is being deleted, the record of its object is gone: the author says what becomes of that.
    reason = "{.status.conditions[?(@.type=='Ready')].reason}"
    kubectl("wait", held, f"--for=jsonpath={reason}=DeleteFailed", "--timeout=240s")
    (ready,) = kubectl.get(held)["status"]["conditions"]
    assert ready["message"] == (
        "Delete call failed: its status was wiped, and with it the record of its object: whether "
        f"{location} is that object is not known. To delete it, annotate the resource with "
        "cnrm.cloud.google.com/deletion-policy: delete. To leave the object alone, annotate it with "
        "cnrm.cloud.google.com/deletion-policy: abandon"
    )
    kubectl("wait", spoken, "--for=delete", "--timeout=240s")
    kubectl("annotate", held, "cnrm.cloud.google.com/deletion-policy=abandon")
    kubectl("wait", held, "--for=delete", "--timeout=240s")
    assert harness.live(bucket_path("spoken")) is None
    assert harness.live(bucket_path("held"))["name"] == "held"
    assert [one.method for name in ("busy", "calm", "held") for one in harness.writes_to(bucket_path(name))] == []
