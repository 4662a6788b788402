"""What ends a wait before its time, because what is waited for will not come; and what it means to run out of time."""

from typing import Any

from tests.cluster.waiting.fake_controllers import condition
from tests.cluster.waiting.four_waits import AT_FIRST, four, play, uids
from tests.cluster.waiting.manifests import config_map, deployment, job, kept, record
from tests.cluster.waiting.wait_harness import Applying, WaitHarness


def _begin(harness: WaitHarness, tree: Any, wait: Any) -> Applying:
    name = tree["metadata"]["name"]
    dependant = kept(config_map("dependant"), after=f"KubernetesObject/{name}")
    applying = harness.begin_apply(kept(tree, waitFor={**wait, "timeout": "240s"}), dependant)
    applying.until_said(f"KubernetesObject here/{name} waiting", "KubernetesObject here/dependant waiting")
    return applying


def test_a_job_that_failed_is_not_waited_for(harness: WaitHarness) -> None:
    applying = _begin(harness, job("migrate"), {"rollout": True})
    harness.controllers.fail("Job/migrate", "Job has reached the specified backoff limit")
    code, text = applying.ended()

    assert code == 1
    why = "BackoffLimitExceeded: Job has reached the specified backoff limit"
    assert "KubernetesObject here/migrate waiting: 0 of 1 completions\n" in text
    assert f"KubernetesObject here/migrate failed: {why}\n" in text
    assert harness.ready("migrate") == ("WaitFailed", why)
    assert harness.controllers.see("ConfigMap/dependant") is None


def test_a_failure_may_be_what_is_waited_for(harness: WaitHarness) -> None:
    applying = _begin(harness, job("fails"), {"condition": "Failed"})
    harness.controllers.fail("Job/fails", "as it should")

    assert applying.ended().code == 0


def test_a_rollout_that_makes_no_progress_is_not_waited_for(harness: WaitHarness) -> None:
    applying = _begin(harness, deployment("stuck"), {"rollout": True})
    why = {"reason": "ProgressDeadlineExceeded", "message": 'ReplicaSet "stuck-1" has timed out progressing.'}
    harness.controllers.bring_up("Deployment/stuck", 3, up=1, conditions=[condition("Progressing", "False", **why)])
    code, text = applying.ended()

    assert code == 1
    told = 'ProgressDeadlineExceeded: ReplicaSet "stuck-1" has timed out progressing.'
    assert f"KubernetesObject here/stuck failed: {told}\n" in text
    assert harness.controllers.see("ConfigMap/dependant") is None


def test_a_deleted_object_is_created_again_and_the_wait_for_the_first_has_failed(
    harness: WaitHarness,
) -> None:
    applying = _begin(harness, record("deleted"), {"condition": "Ready"})
    first = harness.controllers.see("DNSRecord/deleted")["metadata"]["uid"]
    harness.controllers.delete("DNSRecord/deleted")
    code, text = applying.ended()

    assert code == 1
    told = "Recreated: DNSRecord here/deleted was replaced by another while it was waited for"
    assert f"KubernetesObject here/deleted failed: {told}\n" in text
    assert harness.controllers.see("DNSRecord/deleted")["metadata"]["uid"] != first


def test_a_replaced_object_is_not_waited_for(harness: WaitHarness) -> None:
    applying = _begin(harness, record("replaced"), {"condition": "Ready"})
    applying.child.freeze()
    harness.controllers.delete("DNSRecord/replaced")
    harness.controllers.make(record("replaced"))
    applying.child.thaw()
    code, text = applying.ended()

    assert code == 1
    told = "Recreated: DNSRecord here/replaced was replaced by another while it was waited for"
    assert f"KubernetesObject here/replaced failed: {told}\n" in text


def test_what_failed_is_waited_for_again_by_the_next_apply(harness: WaitHarness) -> None:
    manifest = kept(job("again"), waitFor={"rollout": True, "timeout": "240s"})
    applying = harness.begin_apply(manifest)
    applying.until_said("KubernetesObject here/again waiting")
    harness.controllers.fail("Job/again", "it did not work")
    assert applying.ended().code == 1
    harness.controllers.delete("Job/again")
    applying = harness.begin_apply(manifest)
    applying.until_said("KubernetesObject here/again waiting")
    harness.controllers.complete("Job/again")
    code, text = applying.ended()

    assert code == 0, text


# --- Out of time ------------------------------------------------------------------------------------------------------


def test_a_timeout_leaves_the_objects_and_blocks_dependants_and_the_next_apply_goes_on(harness: WaitHarness) -> None:
    first = harness.apply(*four("2s"))
    made = uids(harness.controllers)
    second = harness.apply(*four("2s"))

    for code, text in (first, second):
        assert code == 3, text
        for name, why in AT_FIRST.items():
            assert f"KubernetesObject here/{name} timed out: not within 2 s: {why}. " in text
        assert "here/dependant waiting: reference KubernetesObject here/by-condition is not ready" in text
    assert uids(harness.controllers) == made
    assert harness.controllers.see("ConfigMap/dependant") is None

    applying = harness.begin_apply(*four("240s"))
    applying.until_said("KubernetesObject here/by-rollout waiting")
    play(harness.controllers)
    code, text = applying.ended()
    assert code == 0, text
    assert "KubernetesObject here/dependant created\n" in text
    assert uids(harness.controllers) == made
    assert len(harness.writes()) == 5


def test_an_apply_that_may_not_wait_that_long_exits_3_and_says_what_is_missing(harness: WaitHarness) -> None:
    code, text = harness.apply(*four("240s"), timeout="4s")

    assert code == 3
    assert "KubernetesObject here/by-rollout waiting: the controller has not reported yet\n" in text
    assert harness.ready("by-rollout") == ("Waiting", "the controller has not reported yet")
