"""The controller recovers by itself from every fault of the cluster and of the network."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from soak.fleet.process import RunProcess
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.kubectl import Kubectl, install_kinds
from tests.cluster.running.manifests import bucket, bucket_path
from tests.cluster.running.proxy import (
    NetworkFault,
    cut_off,
    lost_responses,
    no_events,
    no_fault,
    slow,
    sometimes,
    too_many_requests,
)
from tests.cluster.server import Cluster

MANY = 8


@dataclass(frozen=True, slots=True)
class FaultHarness:
    """An API server that may be killed, and a controller that uses it by a proxy with faults."""

    server: Cluster
    harness: ControllerHarness
    controller: RunProcess

    def create_bucket(self, name: str) -> str:
        """Creates a bucket and waits until it is ready; the argument for kubectl."""
        self.harness.kubectl.apply(bucket(name))
        self.harness.kubectl.until_ready(f"storagebucket/{name}")
        return f"storagebucket/{name}"

    def edit(self, target: str, age: int) -> None:
        """The author changes the age of the lifecycle rule."""
        rule = f'{{"action": {{"type": "Delete"}}, "condition": {{"age": {age}}}}}'
        self.harness.kubectl("patch", target, "--type=merge", "-p", f'{{"spec": {{"lifecycleRule": [{rule}]}}}}')

    def ages(self, target: str) -> list[int]:
        """The ages that were written to the cloud, in order: each edit has to be there once."""
        written = self.harness.writes_to(bucket_path(target.partition("/")[2]))
        bodies = [one.body for one in written if isinstance(one.body, dict) and "lifecycle" in one.body]
        return [body["lifecycle"]["rule"][0]["condition"]["age"] for body in bodies]

    def until_written(self, target: str, age: int) -> None:
        """Returns when an edit has been written, and the status has the newest generation."""
        until(lambda: age in self.ages(target))
        generation = self.harness.kubectl.get(target)["metadata"]["generation"]
        jsonpath = f"--for=jsonpath={{.status.observedGeneration}}={generation}"
        self.harness.kubectl("wait", target, jsonpath, "--timeout=240s")

    def set_fault(self, fault: NetworkFault) -> None:
        """Sets the fault for new requests."""
        self.harness.proxy.fault = fault

    def cut_all(self) -> int:
        """Aborts every watch and every other open request; returns their number."""
        return self.harness.background.call(self.harness.proxy.cut)


@pytest.fixture(scope="module")
def fault_harness(
    running_outage_server: Cluster, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultHarness]:
    """A controller on an API server that tests kill and restart."""
    server = running_outage_server
    install_kinds(server.access, kubectl_program)
    kubectl = Kubectl(kubectl_program, server.access, server.access.new_namespace())
    with ControllerHarness(kubectl, Path(tmp_path_factory.mktemp("faults"))) as harness:
        yield FaultHarness(server, harness, harness.start_controller("--shards", "2"))


@pytest.fixture
def faults(fault_harness: FaultHarness) -> Iterator[FaultHarness]:
    """The harness without faults. After the test the process has to be the same, without a logged bug."""
    pid = fault_harness.controller.child.pid
    yield fault_harness
    fault_harness.set_fault(no_fault)
    fault_harness.harness.proxy.loses_response = lambda _: False
    fault_harness.server.start()
    assert (fault_harness.controller.child.pid, fault_harness.controller.bugs()) == (pid, [])


def test_edits_are_carried_out_after_the_api_server_was_killed_and_restarted(faults: FaultHarness) -> None:
    target = faults.create_bucket("restarted")
    faults.edit(target, 1)
    faults.server.api_server.kill()
    faults.server.start()
    faults.edit(target, 2)
    faults.until_written(target, 2)

    # The first edit may have been written before the kill, or superseded.
    assert faults.ages(target) in ([1, 2], [2])


def test_shards_are_lost_without_etcd_and_acquired_again_with_it(faults: FaultHarness) -> None:
    target = faults.create_bucket("forgotten")
    lost, gained = (len(faults.controller.logged(event)) for event in ("shard lost", "shard acquired"))
    faults.server.etcd.kill()
    faults.harness.in_cloud(lambda cloud: cloud.edit("/b/forgotten", {"website": {"mainPageSuffix": "index.html"}}))
    faults.controller.until_logged("shard lost", lost + 2)
    faults.server.etcd.start()
    faults.server.wait_until_ready()
    faults.controller.until_logged("shard acquired", gained + 2)
    until(lambda: "website" not in faults.harness.live(bucket_path("forgotten")))
    faults.edit(target, 1)
    faults.until_written(target, 1)

    reverting, edit = faults.harness.writes_to(bucket_path("forgotten"))
    assert reverting.body == {"website": None}
    assert "lifecycle" in str(edit.body)


def test_an_edit_while_all_watches_are_cut_is_carried_out_when_they_are_resumed(faults: FaultHarness) -> None:
    target = faults.create_bucket("unwatched")
    faults.set_fault(cut_off)
    cut = faults.cut_all()
    faults.edit(target, 1)
    faults.set_fault(no_fault)
    faults.until_written(target, 1)

    # A watch of each kind, and one of Secrets.
    assert cut >= 5
    assert faults.ages(target) == [1]


def test_an_edit_before_a_compaction_is_found_by_a_relist(faults: FaultHarness) -> None:
    target = faults.create_bucket("compacted")
    faults.set_fault(cut_off)
    faults.cut_all()
    faults.edit(target, 1)
    faults.server.compact()
    faults.server.restart_api_server()
    faults.set_fault(no_fault)
    faults.until_written(target, 1)
    faults.edit(target, 2)
    faults.until_written(target, 2)

    assert faults.ages(target) == [1, 2]
    reasons = [line["why"] for line in faults.controller.logged("watch broke off")]
    assert any("410" in why and "list again" in why for why in reasons), reasons


def test_an_edit_during_many_429_responses_is_carried_out(faults: FaultHarness) -> None:
    target = faults.create_bucket("refused")
    faults.set_fault(too_many_requests(retry_after=1))
    faults.cut_all()
    faults.edit(target, 1)
    until(lambda: _refusals(faults) >= MANY)
    faults.set_fault(no_fault)
    faults.until_written(target, 1)

    assert faults.ages(target) == [1]


@pytest.mark.parametrize(("name", "fault"), [("refused", too_many_requests(retry_after=0)), ("cut-off", cut_off)])
def test_edits_are_written_once_when_a_third_of_the_requests_fails(
    faults: FaultHarness, name: str, fault: NetworkFault
) -> None:
    faults.set_fault(sometimes(fault, 0.33))
    target = faults.create_bucket(f"now-and-then-{name}")
    for age in (1, 2, 3):
        faults.edit(target, age)
        faults.until_written(target, age)

    assert faults.ages(target) == [1, 2, 3]


def test_edits_are_written_once_when_responses_are_lost(faults: FaultHarness) -> None:
    faults.harness.proxy.loses_response = lost_responses(0.33)
    target = faults.create_bucket("unanswered")
    for age in (1, 2, 3, 4):
        faults.edit(target, age)
        faults.until_written(target, age)

    assert faults.ages(target) == [1, 2, 3, 4]
    create_bucket = faults.harness.in_cloud(
        lambda cloud: [one for one in cloud.written if "'unanswered'" in str(one.body)]
    )
    assert [one.method for one in create_bucket] == ["POST"]


def _refusals(faults: FaultHarness) -> int:
    return faults.harness.background.call(lambda: sum(one.status == 429 for one in faults.harness.proxy.requests))


def test_a_refused_event_does_not_stop_a_step(faults: FaultHarness) -> None:
    faults.set_fault(no_events)
    target = faults.create_bucket("unrecorded")
    faults.edit(target, 1)
    faults.until_written(target, 1)
    # At once, and then once a minute at most.
    until(lambda: faults.controller.logged("events not written") != [])
    first, *later = faults.controller.logged("events not written")

    assert first["lost"] == 1
    assert len(later) <= 1
    assert [line for line in faults.controller.logged("step to be retried") if "unrecorded" in line["ref"]] == []


def test_a_slow_api_server_costs_no_shard(faults: FaultHarness) -> None:
    target = faults.create_bucket("slow")
    lost = len(faults.controller.logged("shard lost"))
    faults.set_fault(slow(0.5))
    faults.edit(target, 1)
    faults.until_written(target, 1)
    faults.edit(target, 2)
    faults.until_written(target, 2)

    assert faults.ages(target) == [1, 2]
    assert len(faults.controller.logged("shard lost")) == lost
