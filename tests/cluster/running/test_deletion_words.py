"""Annotations that say what a deletion destroys: a word that is not known deletes nothing, whenever it is written."""

import json
from typing import Any, Final

from setpoint.localcloud.faults import FailRequest
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket, bucket_path

POLICY: Final = "cnrm.cloud.google.com/deletion-policy"
FORCE: Final = "cnrm.cloud.google.com/force-destroy"
MANAGEMENT: Final = "setpoint.dev/management"
PROTECTION: Final = "setpoint.dev/delete-protection"
# By the name of a bucket: an annotation that holds its deletion.
HELD: Final = {
    "upper": (POLICY, "ABANDON"),
    "spaced": (POLICY, " abandon"),
    "empty": (POLICY, ""),
    "misspelt": ("cnrm.cloud.google.com/deletion-polcy", "abandon"),
    "forced": (FORCE, "True"),
    "observed": (MANAGEMENT, "Observe"),
}


def _object(name: str) -> dict[str, Any]:
    """A KubernetesObject with a ConfigMap."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}
    spec = {"manifest": manifest}
    return {"apiVersion": "setpoint.dev/v1alpha1", "kind": "KubernetesObject", "metadata": {"name": name}, "spec": spec}


def _resources(harness: ControllerHarness) -> dict[str, Any]:
    """Every resource by name, with one call."""
    found = json.loads(harness.kubectl("get", "storagebuckets,kubernetesobjects", "-o", "json"))["items"]
    return {one["metadata"]["name"]: one for one in found}


def _ready(resource: Any) -> tuple[str, str]:
    conditions = resource.get("status", {}).get("conditions", [])
    return next(((one["reason"], one["message"]) for one in conditions if one["type"] == "Ready"), ("", ""))


def _annotate(harness: ControllerHarness, resource: Any, annotations: dict[str, str | None]) -> None:
    group, kind, name = resource["apiVersion"], resource["kind"].lower(), resource["metadata"]["name"]
    path = f"/apis/{group}/namespaces/{harness.kubectl.namespace}/{kind}s/{name}"
    answer = harness.kubectl.access.call("PATCH", path, {"metadata": {"annotations": annotations}})
    assert answer.status == 200, answer.body


def test_a_word_that_is_not_known_holds_a_deletion_that_was_asked_for_while_no_controller_ran(
    harness: ControllerHarness,
) -> None:
    kubectl, first = harness.kubectl, harness.start_controller()
    buckets = {name: f"storagebucket/{name}" for name in HELD}
    objects = {"kept-map": (POLICY, "ABANDON"), "protected-map": (PROTECTION, "False")}
    targets = {**buckets, **{name: f"kubernetesobject/{name}" for name in objects}}
    kubectl.apply(*map(bucket, HELD), *map(_object, objects))
    kubectl.until_ready(*targets.values())
    first.stop()
    words = {**HELD, **objects}
    for name, resource in _resources(harness).items():
        key, text = words[name]
        _annotate(harness, resource, {key: text})
    kubectl("delete", *targets.values(), "--wait=false")

    second = harness.start_controller(name="second")
    until(lambda: {_ready(one)[0] for one in _resources(harness).values()} == {"DeleteFailed"})

    held = _resources(harness)
    assert held.keys() == words.keys()
    for name, resource in held.items():
        assert _ready(resource)[1].startswith(f"Delete call failed: {words[name][0]} is "), resource
        assert resource["metadata"]["finalizers"] == ["cnrm.cloud.google.com/finalizer"]
    until(lambda: "DeleteFailed" in kubectl("events", "--for=storagebucket/upper", "--types=Warning"))
    assert [name for name in HELD if harness.live(bucket_path(name)) is None] == []
    assert [kubectl.get(f"configmap/{name}")["data"] for name in objects] == [{"a": "1"}] * 2
    # The words that are known.
    for name, resource in held.items():
        _annotate(harness, resource, {words[name][0]: None, POLICY: "delete" if name == "upper" else "abandon"})
    until(lambda: _resources(harness) == {})
    assert [name for name in HELD if harness.live(bucket_path(name)) is None] == ["upper"]
    assert [kubectl.get(f"configmap/{name}")["data"] for name in objects] == [{"a": "1"}] * 2
    assert second.bugs() == []


def test_a_word_that_is_written_after_the_deletion_was_asked_for_holds_it_as_well(
    shared_harness: ControllerHarness,
) -> None:
    harness, target = shared_harness, "storagebucket/late-word"
    harness.in_cloud(lambda cloud: cloud.journal.clear())
    harness.kubectl.apply(bucket("late-word"))
    harness.kubectl.until_ready(target)
    harness.in_cloud(lambda cloud: cloud.inject(FailRequest(503, "DELETE", "/b/late-word", times=1_000, retry_after=1)))
    harness.kubectl("delete", target, "--wait=false")
    until(lambda: harness.in_cloud(lambda cloud: any(one.method == "DELETE" for one in cloud.journal.entries)))

    _annotate(harness, bucket("late-word"), {POLICY: "Abandon"})
    until(lambda: _ready(harness.kubectl.get(target))[0] == "DeleteFailed")
    harness.in_cloud(lambda cloud: cloud.faults.clear())
    _annotate(harness, bucket("late-word"), {POLICY: "abandon"})
    harness.kubectl("wait", target, "--for=delete", "--timeout=240s")

    assert harness.live(bucket_path("late-word"))["name"] == "late-word"
