"""The cluster fails in every way, and the process that runs there goes on by itself when it is back."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from soak.fleet.process import RunProcess
from tests.cluster.assets import Assets
from tests.cluster.polling import until
from tests.cluster.running.kubectl import Kubectl, install_kinds
from tests.cluster.running.manifests import bucket, bucket_path
from tests.cluster.running.proxy import (
    NetworkFault,
    cut_off,
    lost_answers,
    no_events,
    no_fault,
    now_and_then,
    slow,
    too_many,
)
from tests.cluster.running.controller_harness import Site
from tests.cluster.server import Cluster, Settings

MANY = 8


@dataclass(frozen=True, slots=True)
class Rough:
    """A cluster to be ill-treated, and a process that has to bear it."""

    server: Cluster
    site: Site
    keeper: RunProcess

    def made(self, name: str) -> str:
        """A bucket that is declared and ready: what kubectl calls it."""
        self.site.kubectl.apply(bucket(name))
        self.site.kubectl.until_ready(f"storagebucket/{name}")
        return f"storagebucket/{name}"

    def edit(self, target: str, age: int) -> None:
        """Its author wants objects to be deleted at another age."""
        rule = f'{{"action": {{"type": "Delete"}}, "condition": {{"age": {age}}}}}'
        self.site.kubectl("patch", target, "--type=merge", "-p", f'{{"spec": {{"lifecycleRule": [{rule}]}}}}')

    def ages(self, target: str) -> list[int]:
        """The ages that were written to the cloud, in order: each edit is there once, or something is wrong."""
        written = self.site.writes_to(bucket_path(target.partition("/")[2]))
        bodies = [one.body for one in written if isinstance(one.body, dict) and "lifecycle" in one.body]
        return [body["lifecycle"]["rule"][0]["condition"]["age"] for body in bodies]

    def until_written(self, target: str, age: int) -> None:
        """Returns when an edit has been carried out, and the status says so."""
        until(lambda: age in self.ages(target))
        generation = self.site.kubectl.get(target)["metadata"]["generation"]
        jsonpath = f"--for=jsonpath={{.status.observedGeneration}}={generation}"
        self.site.kubectl("wait", target, jsonpath, "--timeout=240s")

    def set_fault(self, fault: NetworkFault) -> None:
        """How it is between the process and the API server from now on; what is open stays open."""
        self.site.proxy.fault = fault

    def cut_all(self) -> int:
        """Cuts every watch, and whatever else is open; how many."""
        return self.site.background.call(self.site.proxy.cut)


@pytest.fixture(scope="session")
def everything_rough(
    cluster_assets: Assets, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rough]:
    """A cluster of its own, for it is ended, cut off and started again."""
    with Cluster(cluster_assets, tmp_path_factory.mktemp("rough"), Settings(fsync=True)) as server:
        install_kinds(server.access, kubectl_program)
        kubectl = Kubectl(kubectl_program, server.access, server.access.new_namespace())
        with Site(kubectl, Path(tmp_path_factory.mktemp("rough-site"))) as site:
            yield Rough(server, site, site.process("--shards", "2"))


@pytest.fixture
def rough(everything_rough: Rough) -> Iterator[Rough]:
    """The same; afterwards all is well again, and the process is still the same, with no bug on record."""
    pid = everything_rough.keeper.child.pid
    yield everything_rough
    everything_rough.set_fault(no_fault)
    everything_rough.site.proxy.loses_answer = lambda _: False
    everything_rough.server.start()
    assert (everything_rough.keeper.child.pid, everything_rough.keeper.bugs()) == (pid, [])


def test_it_goes_on_after_the_api_server_was_killed_and_started_again(rough: Rough) -> None:
    target = rough.made("restarted")
    rough.edit(target, 1)
    rough.server.api_server.kill()
    rough.server.start()
    rough.edit(target, 2)
    rough.until_written(target, 2)

    # The first may have been carried out before the end, or not have been needed any more.
    assert rough.ages(target) in ([1, 2], [2])


def test_it_gives_up_its_shards_while_etcd_is_away_and_takes_them_again_with_it(rough: Rough) -> None:
    target = rough.made("forgotten")
    lost, gained = (len(rough.keeper.said(event)) for event in ("shard lost", "shard acquired"))
    rough.server.etcd.kill()
    rough.site.in_cloud(lambda cloud: cloud.edit("/b/forgotten", {"website": {"mainPageSuffix": "index.html"}}))
    rough.keeper.until_said("shard lost", lost + 2)
    rough.server.etcd.start()
    rough.server.wait_until_ready()
    rough.keeper.until_said("shard acquired", gained + 2)
    until(lambda: "website" not in rough.site.live(bucket_path("forgotten")))
    rough.edit(target, 1)
    rough.until_written(target, 1)

    putting_back, edit = rough.site.writes_to(bucket_path("forgotten"))
    assert putting_back.body == {"website": None}
    assert "lifecycle" in str(edit.body)


def test_what_is_edited_while_all_watches_are_cut_is_carried_out_when_they_are_taken_up_again(rough: Rough) -> None:
    target = rough.made("unheard")
    rough.set_fault(cut_off)
    cut = rough.cut_all()
    rough.edit(target, 1)
    rough.set_fault(no_fault)
    rough.until_written(target, 1)

    # A watch of each kind, and one of Secrets.
    assert cut >= 5
    assert rough.ages(target) == [1]


def test_what_is_edited_before_a_compaction_is_found_by_listing_again(rough: Rough) -> None:
    target = rough.made("compacted")
    rough.set_fault(cut_off)
    rough.cut_all()
    rough.edit(target, 1)
    rough.server.compact()
    rough.server.restart_api_server()
    rough.set_fault(no_fault)
    rough.until_written(target, 1)
    rough.edit(target, 2)
    rough.until_written(target, 2)

    assert rough.ages(target) == [1, 2]
    told = [line["why"] for line in rough.keeper.said("watch broke off")]
    assert any("410" in why and "list again" in why for why in told), told


def test_a_storm_of_refusals_loses_nothing(rough: Rough) -> None:
    target = rough.made("refused")
    rough.set_fault(too_many(retry_after=1))
    rough.cut_all()
    rough.edit(target, 1)
    until(lambda: _refusals(rough) >= MANY)
    rough.set_fault(no_fault)
    rough.until_written(target, 1)

    assert rough.ages(target) == [1]


@pytest.mark.parametrize(("name", "fault"), [("refused", too_many(retry_after=0)), ("cut-off", cut_off)])
def test_what_fails_one_time_in_three_is_done_in_the_end_and_once(rough: Rough, name: str, fault: NetworkFault) -> None:
    rough.set_fault(now_and_then(fault, 0.33))
    target = rough.made(f"now-and-then-{name}")
    for age in (1, 2, 3):
        rough.edit(target, age)
        rough.until_written(target, age)

    assert rough.ages(target) == [1, 2, 3]


def test_what_is_done_without_an_answer_is_not_done_again(rough: Rough) -> None:
    rough.site.proxy.loses_answer = lost_answers(0.33)
    target = rough.made("unanswered")
    for age in (1, 2, 3, 4):
        rough.edit(target, age)
        rough.until_written(target, age)

    assert rough.ages(target) == [1, 2, 3, 4]
    made = rough.site.in_cloud(lambda cloud: [one for one in cloud.written if "'unanswered'" in str(one.body)])
    assert [one.method for one in made] == ["POST"]


def _refusals(rough: Rough) -> int:
    return rough.site.background.call(lambda: sum(one.status == 429 for one in rough.site.proxy.asked))


def test_an_event_that_the_cluster_does_not_take_keeps_nothing_from_being_done(rough: Rough) -> None:
    rough.set_fault(no_events)
    retried = len(rough.keeper.said("step to be retried"))
    target = rough.made("untold")
    rough.edit(target, 1)
    rough.until_written(target, 1)
    untold = [line for line in rough.keeper.said("event not written") if "untold" in line["ref"]]

    assert len(untold) >= 3
    assert len(rough.keeper.said("step to be retried")) == retried


def test_a_cluster_that_is_slow_costs_no_shard(rough: Rough) -> None:
    target = rough.made("slow")
    lost = len(rough.keeper.said("shard lost"))
    rough.set_fault(slow(0.5))
    rough.edit(target, 1)
    rough.until_written(target, 1)
    rough.edit(target, 2)
    rough.until_written(target, 2)

    assert rough.ages(target) == [1, 2]
    assert len(rough.keeper.said("shard lost")) == lost
