"""How many requests to the API server a resource costs: a controller is as fast as it sends few."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import (
    STORAGE,
    bucket,
    bucket_path,
    database,
    declared,
    instance,
    instance_path,
    secret,
    user,
)

# The claim with its finalizer, the claim in the status, the result, and one event without asking for it first.
CREATION: Final = ("PATCH", "PATCH status", "PATCH status", "POST events")
# The result. Its event is gathered with those of later edits, and sent within a minute: see ROUTINE_SECONDS.
EDIT: Final = ("PATCH status",)
CORRECTION: Final = ("PATCH status", "PATCH status", "POST events")
DELETION: Final = ("PATCH", "POST events")


@dataclass(frozen=True, slots=True)
class Counted:
    """A resource, and the requests of the controller about it and about its events."""

    harness: ControllerHarness
    plural: str
    name: str

    @property
    def target(self) -> str:
        return f"{self.plural}/{self.name}"

    def create(self, manifest: Any, last: str = "Created") -> Sequence[str]:
        """The requests of a creation; `last` is the reason of its last event."""
        return self.counted(lambda: self.harness.kubectl.apply(manifest), last, generation=1)

    def edit(self, spec: Any, generation: int, last: str = "") -> Sequence[str]:
        """The requests of an edit; `last` is the reason of its last event, if one is sent at once."""
        patch = json.dumps({"spec": spec})
        edit = ("patch", self.target, "--type=merge", "-p", patch)
        return self.counted(lambda: self.harness.kubectl(*edit), last, generation=generation)

    def delete(self) -> Sequence[str]:
        """The requests of a deletion."""
        before = len(self.harness.requests())
        self.harness.kubectl("delete", self.target, "--timeout=240s")
        until(lambda: self.events().get("Deleted", 0) == 1)
        return self.requests(before)

    def counted(self, edit: Callable[[], object], reason: str, *, generation: int) -> Sequence[str]:
        """The requests until an edit is reconciled, and reported by an event with this reason, if there is one."""
        before = len(self.harness.requests())
        edit()
        observed = "--for=jsonpath={.status.observedGeneration}=" + str(generation)
        self.harness.kubectl("wait", self.target, observed, "--timeout=240s")
        self.harness.kubectl.until_ready(self.target)
        until(lambda: not reason or reason in self.events())
        return self.requests(before)

    def requests(self, since: int) -> Sequence[str]:
        """The requests after the first `since`: the method, and what of the resource it is about."""
        found = [one for one in self.harness.requests(since) if not one.is_watch]
        own = [one for one in found if f"/{self.plural}/{self.name}" in one.path]
        return [
            *(f"{one.method} {'status' if one.path.endswith('/status') else ''}".strip() for one in own),
            # An Event is named after its resource; a new one is sent to the collection.
            *(f"{one.method} events" for one in found if f"/events/{self.name}." in one.path),
            *("POST events" for one in found if one.path.endswith("/events")),
        ]

    def events(self) -> dict[str, int]:
        """How often each reason was recorded."""
        about = f"--field-selector=involvedObject.name={self.name}"
        found = json.loads(self.harness.kubectl("get", "events", about, "-o", "json"))["items"]
        return {one["reason"]: one["count"] for one in found}


def test_a_creation_takes_four_requests_and_an_edit_one(harness: ControllerHarness) -> None:
    controller = harness.start_controller()
    counted = Counted(harness, "storagebuckets", "counted")

    assert counted.create(bucket("counted")) == [*CREATION]
    before = len(harness.requests())
    assert counted.edit({"storageClass": "NEARLINE"}, 2) == [*EDIT]
    assert counted.edit({"storageClass": "COLDLINE"}, 3) == [*EDIT]
    assert [one.method for one in harness.writes_to(bucket_path("counted"))] == ["PATCH", "PATCH"]
    assert counted.delete() == [*DELETION]
    # By the time that the deletion is told, an event of an edit would have been.
    assert sorted(counted.requests(before)) == sorted([*EDIT, *EDIT, *DELETION])
    controller.stop()
    assert counted.events() == {"Created": 1, "Updated": 2, "Deleted": 1}


def test_a_look_that_finds_nothing_takes_no_request(harness: ControllerHarness) -> None:
    harness.start_controller()
    looked_at = declared(STORAGE, "StorageBucket", "seen", {"location": "EU"}, reconcile_interval_in_seconds="1")
    Counted(harness, "storagebuckets", "seen").create(looked_at)
    # The first look is that of the process itself: it follows what it wrote.
    harness.until_observed(bucket_path("seen"))
    before = len(harness.requests())

    harness.until_observed(bucket_path("seen"), times=3)

    assert [one.path for one in harness.requests(before) if not one.is_watch and one.method != "GET"] == []
    assert [one.path for one in harness.requests(before) if "/seen" in one.path] == []


def test_a_database_and_a_user_cost_no_more_though_they_wait_for_their_instance(harness: ControllerHarness) -> None:
    """Those of an instance have an operation on record as well: begun is told, and done."""
    harness.start_controller()
    parent = Counted(harness, "sqlinstances", "parent")
    created = parent.create(instance("parent"))
    one, two = Counted(harness, "sqldatabases", "one"), Counted(harness, "sqlusers", "two")
    harness.kubectl.apply(secret("password", "Sesame-1"))

    assert created == ["PATCH", *("PATCH status",) * 4, "POST events", "POST events"]
    assert one.create(database("one", "parent")) == [*CREATION]
    assert two.create(user("two", "parent", "password")) == [*CREATION]
    edited = one.edit({"collation": "utf8mb4_bin"}, 2, last="Updated")
    # Of a kind without cookies it is not known whether the author or another writer has changed it: that is told.
    assert edited == ["PATCH status", *EDIT, "POST events", "POST events"]
    # A user is gone with the answer; of a database and an instance the operation is on record.
    assert two.delete() == [*DELETION]
    assert one.delete() == ["PATCH status", *DELETION]
    assert parent.delete() == ["PATCH status", *DELETION]


def test_what_is_declared_together_with_its_instance_is_never_reported_as_blocked(harness: ControllerHarness) -> None:
    harness.start_controller()
    counted = Counted(harness, "sqldatabases", "inside")
    declared_together = (database("inside", "outside"), instance("outside"))
    before = len(harness.requests())
    harness.kubectl.apply(*declared_together)
    harness.kubectl.until_ready("sqldatabase/inside", "sqlinstance/outside")
    until(lambda: counted.events().get("Created", 0) == 1)

    assert counted.events() == {"Created": 1}
    own = [one for one in counted.requests(before) if one != "POST events"]
    assert own == [one for one in CREATION if one != "POST events"]


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


@pytest.mark.parametrize("parent_first", [True, False])
def test_an_instance_is_deleted_together_with_what_is_in_it_and_nothing_is_refused(
    shared_harness: ControllerHarness, *, parent_first: bool
) -> None:
    harness, parent = shared_harness, f"whole-{parent_first}".lower()
    names = [f"{parent}-{number}" for number in range(3)]
    harness.kubectl.apply(instance(parent), *(database(name, parent) for name in names))
    targets = [*(f"sqldatabase/{name}" for name in names), f"sqlinstance/{parent}"]
    harness.kubectl.until_ready(*targets)

    harness.kubectl("delete", *(reversed(targets) if parent_first else targets), "--timeout=240s")

    written = harness.in_cloud(
        lambda cloud: [
            one for one in cloud.written if one.path.startswith(instance_path(parent)) and one.method == "DELETE"
        ]
    )
    # The default users of an instance are deleted when it is new.
    deleted = [one for one in written if "/users" not in one.path]
    assert {one.status for one in deleted} == {200}
    assert deleted[-1].path == instance_path(parent)


# --- Objects of the cluster itself ------------------------------------------------------------------------------------


def _object(name: str, **data: str) -> dict[str, Any]:
    """A KubernetesObject with a ConfigMap of the same name."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    document = {"apiVersion": "setpoint.dev/v1alpha1", "kind": "KubernetesObject", "metadata": {"name": name}}
    return {**document, "spec": {"manifest": manifest}}


@dataclass(frozen=True, slots=True)
class CountedObject(Counted):
    """A KubernetesObject, and the requests about its ConfigMap as well."""

    def requests(self, since: int) -> Sequence[str]:
        """Those about the ConfigMap, and then those about the resource and its events."""
        found = [one for one in self.harness.requests(since) if not one.is_watch]
        objects = [one for one in found if one.path.endswith(f"/configmaps/{self.name}")]
        shown = [f"{'dry-run ' if 'dryRun' in one.query else ''}{one.method} configmap" for one in objects]
        # Not by super(), which a dataclass with slots does not have.
        return [*shown, *Counted.requests(self, since)]

    def set_data(self, **data: str) -> None:
        """Another writer edits the ConfigMap."""
        self.harness.kubectl("patch", f"configmap/{self.name}", "--type=merge", "-p", json.dumps({"data": data}))


def _watched(harness: ControllerHarness) -> None:
    """Returns when the controller watches ConfigMaps: with the first object it begins to."""
    CountedObject(harness, "kubernetesobjects", "first").create(_object("first", a="1"))
    until(lambda: any(one.is_watch and one.path.endswith("/configmaps") for one in harness.requests()))


# The claim with its finalizer, the result, and the event: the object itself shows that the resource created it.
OBJECT_CREATION: Final = ("PATCH", "PATCH status", "POST events")


def test_an_object_takes_four_requests_to_be_created_and_two_to_be_edited(harness: ControllerHarness) -> None:
    harness.start_controller()
    _watched(harness)
    counted = CountedObject(harness, "kubernetesobjects", "counted")

    assert counted.create(_object("counted", a="1")) == ["PATCH configmap", *OBJECT_CREATION]
    edited = _object("counted", a="2")["spec"]
    assert counted.edit(edited, 2) == ["PATCH configmap", *EDIT]
    again = _object("counted", a="3")["spec"]
    assert counted.edit(again, 3) == ["PATCH configmap", *EDIT]
    assert harness.kubectl.get("configmap/counted")["data"] == {"a": "3"}


def test_a_correction_of_an_object_reads_it_once(harness: ControllerHarness) -> None:
    harness.start_controller()
    _watched(harness)
    counted = CountedObject(harness, "kubernetesobjects", "drifting")
    counted.create(_object("drifting", a="1"))

    corrected = counted.counted(lambda: counted.set_data(a="2"), "Updated", generation=1)

    # What a forced apply comes to; the revert is on record before it.
    assert corrected == ["GET configmap", "dry-run PATCH configmap", "PATCH configmap", *CORRECTION]
    assert harness.kubectl.get("configmap/drifting")["data"] == {"a": "1"}


def _steps_in_sync(page: str) -> float:
    """How many steps of KubernetesObjects found nothing to do."""
    found = [
        line
        for line in page.splitlines()
        if line.startswith("setpoint_decisions_total{") and 'kind="KubernetesObject"' in line and '"in sync"' in line
    ]
    return sum(float(line.rpartition(" ")[2]) for line in found)


def test_a_restart_and_resyncs_read_no_object_that_has_not_changed(harness: ControllerHarness) -> None:
    first = harness.start_controller()
    names = [f"settled-{number}" for number in range(5)]
    interval = {"annotations": {"cnrm.cloud.google.com/reconcile-interval-in-seconds": "1"}}
    for name in names:
        found = _object(name, a="1")
        harness.kubectl.apply(found | {"metadata": found["metadata"] | interval})
    harness.kubectl.until_ready(*(f"kubernetesobject/{name}" for name in names))
    first.stop()
    before = len(harness.requests())
    second = harness.start_controller(name="second")
    # A change that follows many resyncs of all others.
    until(lambda: _steps_in_sync(second.metrics()) >= 5 * len(names))
    counted = CountedObject(harness, "kubernetesobjects", "settled-0")
    counted.counted(lambda: counted.set_data(a="2"), "Updated", generation=1)

    sent = [one for one in harness.requests(before) if not one.is_watch]
    assert [one.path for one in sent if "/configmaps/" in one.path and not one.path.endswith("/settled-0")] == []
