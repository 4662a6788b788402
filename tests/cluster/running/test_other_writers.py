"""Other writers of a resource in a cluster: what they take off or wipe comes back at once."""

import json
from typing import Any, Final

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
