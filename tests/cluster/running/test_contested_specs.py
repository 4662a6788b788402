"""Two tools that apply one custom resource with different values, each by force."""

import json
from typing import Any

from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket, bucket_path


def _apply_as(harness: ControllerHarness, manager: str, manifest: dict[str, Any]) -> None:
    """Applies as that tool does, and waits until the controller has seen it."""
    server_side = ("--server-side", "--force-conflicts", f"--field-manager={manager}")
    harness.kubectl("apply", *server_side, "-f", "-", stdin=json.dumps(manifest))
    target = f"storagebucket/{manifest['metadata']['name']}"
    generation = harness.kubectl.get(target)["metadata"]["generation"]
    harness.kubectl("wait", target, f"--for=jsonpath={{.status.observedGeneration}}={generation}", "--timeout=240s")


def _with_class(name: str, storage_class: str) -> dict[str, Any]:
    manifest = bucket(name)
    return {**manifest, "spec": {**manifest["spec"], "storageClass": storage_class}}


def test_two_appliers_that_disagree_are_named_and_damped(shared_harness: ControllerHarness) -> None:
    """After a few edits nothing more is written to the cloud, however often the spec is changed back."""
    harness, target = shared_harness, "storagebucket/contested"
    for _ in range(5):
        _apply_as(harness, "team-a", _with_class("contested", "NEARLINE"))
        _apply_as(harness, "team-b", _with_class("contested", "COLDLINE"))

    found = {one["type"]: one for one in harness.kubectl.get(target)["status"]["conditions"]}
    # The first of them created it; each of the others was a return to what the other tool had replaced.
    assert [one.method for one in harness.writes_to(bucket_path("contested"))] == ["PATCH"] * 4
    assert found["Contested"]["reason"] == "AlternatingIntents"
    for word in ("spec.storageClass", '"NEARLINE" by team-a', '"COLDLINE" by team-b'):
        assert word in found["Contested"]["message"]
    until(lambda: '"reason": "Contested"' in harness.kubectl("get", "events", "-o", "json"))
