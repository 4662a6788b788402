"""How many requests to the API server a resource costs: a controller is as fast as it sends few."""

import json
from typing import Any

from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket, bucket_path, database, instance, instance_path


class CountedBucket:
    """A bucket, and the requests of the controller about it. No other resource of the namespace changes meanwhile."""

    def __init__(self, harness: ControllerHarness, name: str) -> None:
        self.harness = harness
        self.name = name
        self.target = f"storagebucket/{name}"

    def create(self) -> list[str]:
        """The requests of a creation."""
        return self.counted(lambda: self.harness.kubectl.apply(bucket(self.name)), "Created", generation=1)

    def edit(self, storage_class: str, generation: int, times: int = 1) -> list[str]:
        """The requests of an edit."""
        patch = json.dumps({"spec": {"storageClass": storage_class}})
        return self.counted(
            lambda: self.harness.kubectl("patch", self.target, "--type=merge", "-p", patch),
            "Updated",
            generation=generation,
            times=times,
        )

    def counted(self, edit: Any, reason: str, *, generation: int, times: int = 1) -> list[str]:
        """The requests until an edit is reconciled, and reported by an event with this reason, for that many times."""
        before = len(self.harness.requests())
        edit()
        observed = "--for=jsonpath={.status.observedGeneration}=" + str(generation)
        self.harness.kubectl("wait", self.target, observed, "--timeout=240s")
        self.harness.kubectl.until_ready(self.target)
        until(lambda: self.events().get(reason, 0) >= times)
        paths = (f"/storagebuckets/{self.name}", "/events")
        found = [one for one in self.harness.requests(before) if any(path in one.path for path in paths)]
        return [f"{one.method} {self._shown(one.path)}" for one in found if not one.is_watch]

    def events(self) -> dict[str, int]:
        """How often each reason was recorded."""
        about = f"--field-selector=involvedObject.name={self.name}"
        found = json.loads(self.harness.kubectl("get", "events", about, "-o", "json"))["items"]
        return {one["reason"]: one["count"] for one in found}

    def _shown(self, path: str) -> str:
        parts = path.partition("/namespaces/")[2].split("/")[1:]
        return "/".join("…" if parts[0] == "events" and index else part for index, part in enumerate(parts))


def test_a_creation_takes_four_requests_and_an_edit_two(shared_harness: ControllerHarness) -> None:
    """The claim with its finalizer, the claim in the status, the result, and one event without asking for it first."""
    counted = CountedBucket(shared_harness, "counted")

    assert counted.create() == [
        "PATCH storagebuckets/counted",
        "PATCH storagebuckets/counted/status",
        "PATCH storagebuckets/counted/status",
        "POST events",
    ]
    assert counted.edit("NEARLINE", 2) == ["PATCH storagebuckets/counted/status", "POST events"]
    assert counted.edit("COLDLINE", 3, times=2) == ["PATCH storagebuckets/counted/status", "PATCH events/…"]
    assert [one.method for one in shared_harness.writes_to(bucket_path("counted"))] == ["PATCH", "PATCH"]


def test_operations_of_one_instance_are_queued_and_none_is_refused(shared_harness: ControllerHarness) -> None:
    harness, names = shared_harness, [f"queued-{number}" for number in range(3)]
    harness.kubectl.apply(instance("queueing"), *(database(name, "queueing") for name in names))
    targets = [f"sqldatabase/{name}" for name in names]
    harness.kubectl.until_ready(*targets)

    harness.kubectl("delete", *targets, "--timeout=240s")

    path = f"{instance_path('queueing')}/databases/"
    written = harness.in_cloud(lambda cloud: [one for one in cloud.written if one.path.startswith(path)])
    assert sorted((one.method, one.path.rpartition("/")[2], one.status) for one in written) == [
        ("DELETE", name, 200) for name in names
    ]
