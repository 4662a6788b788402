"""Waits that fail because they cannot be satisfied any more, and waits that time out."""

from typing import Any

from tests.cluster.waiting.fake_controllers import condition
from tests.cluster.waiting.four_waits import AT_START, four_objects, report_done, uids, until_all_wait
from tests.cluster.waiting.manifests import config_map, deployment, job, kubernetes_object, record
from tests.cluster.waiting.wait_harness import RunningApply, WaitHarness


def _begin(harness: WaitHarness, tree: Any, wait: Any) -> RunningApply:
    name = tree["metadata"]["name"]
    dependant = kubernetes_object(config_map("dependant"), after=f"KubernetesObject/{name}")
    running = harness.start_apply(kubernetes_object(tree, waitFor={**wait, "timeout": "240s"}), dependant)
    running.until_printed(f"KubernetesObject here/{name} waiting", "KubernetesObject here/dependant waiting")
    return running


def test_a_wait_for_a_failed_job_fails(harness: WaitHarness) -> None:
    running = _begin(harness, job("migrate"), {"rollout": True})
    harness.controllers.report_failed("Job/migrate", "Job has reached the specified backoff limit")
    code, text = running.result()

    assert code == 1
    why = "BackoffLimitExceeded: Job has reached the specified backoff limit"
    assert "KubernetesObject here/migrate waiting: 0 of 1 completions\n" in text
    assert f"KubernetesObject here/migrate failed: {why}\n" in text
    assert harness.ready("migrate") == ("WaitFailed", why)
    assert harness.controllers.get("ConfigMap/dependant") is None


def test_the_condition_failed_can_be_waited_for(harness: WaitHarness) -> None:
    running = _begin(harness, job("fails"), {"condition": "Failed"})
    harness.controllers.report_failed("Job/fails", "as it should")

    assert running.result().code == 0


def test_a_wait_for_a_rollout_without_progress_fails(harness: WaitHarness) -> None:
    running = _begin(harness, deployment("stuck"), {"rollout": True})
    why = {"reason": "ProgressDeadlineExceeded", "message": 'ReplicaSet "stuck-1" has timed out progressing.'}
    harness.controllers.report_replicas(
        "Deployment/stuck", 3, up=1, conditions=[condition("Progressing", "False", **why)]
    )
    code, text = running.result()

    assert code == 1
    result = 'ProgressDeadlineExceeded: ReplicaSet "stuck-1" has timed out progressing.'
    assert f"KubernetesObject here/stuck failed: {result}\n" in text
    assert harness.controllers.get("ConfigMap/dependant") is None


def test_a_wait_for_a_deleted_object_fails_and_the_object_is_created_again(
    harness: WaitHarness,
) -> None:
    running = _begin(harness, record("deleted"), {"condition": "Ready"})
    first = harness.controllers.get("DNSRecord/deleted")["metadata"]["uid"]
    harness.controllers.delete("DNSRecord/deleted")
    code, text = running.result()

    assert code == 1
    result = "Recreated: DNSRecord here/deleted was replaced by another while it was waited for"
    assert f"KubernetesObject here/deleted failed: {result}\n" in text
    assert harness.controllers.get("DNSRecord/deleted")["metadata"]["uid"] != first


def test_a_wait_for_a_replaced_object_fails(harness: WaitHarness) -> None:
    running = _begin(harness, record("replaced"), {"condition": "Ready"})
    running.child.freeze()
    harness.controllers.delete("DNSRecord/replaced")
    harness.controllers.create(record("replaced"))
    running.child.thaw()
    code, text = running.result()

    assert code == 1
    result = "Recreated: DNSRecord here/replaced was replaced by another while it was waited for"
    assert f"KubernetesObject here/replaced failed: {result}\n" in text


def test_the_next_apply_after_a_failure_waits_again(harness: WaitHarness) -> None:
    manifest = kubernetes_object(job("again"), waitFor={"rollout": True, "timeout": "240s"})
    running = harness.start_apply(manifest)
    running.until_printed("KubernetesObject here/again waiting")
    harness.controllers.report_failed("Job/again", "it did not work")
    assert running.result().code == 1
    harness.controllers.delete("Job/again")
    running = harness.start_apply(manifest)
    running.until_printed("KubernetesObject here/again waiting")
    harness.controllers.report_complete("Job/again")
    code, text = running.result()

    assert code == 0, text


# --- Timeouts ---------------------------------------------------------------------------------------------------------


def test_a_timeout_keeps_the_objects_and_blocks_dependants_until_the_next_apply(harness: WaitHarness) -> None:
    first = harness.apply(*four_objects("2s"))
    made = uids(harness.controllers)
    second = harness.apply(*four_objects("2s"))

    for code, text in (first, second):
        assert code == 3, text
        for name, why in AT_START.items():
            assert f"KubernetesObject here/{name} timed out: not within 2 s: {why}. " in text
        assert "here/dependant waiting: reference KubernetesObject here/by-condition is not ready" in text
    assert uids(harness.controllers) == made
    assert harness.controllers.get("ConfigMap/dependant") is None

    running = harness.start_apply(*four_objects("240s"))
    running.until_printed("KubernetesObject here/by-rollout waiting")
    report_done(harness.controllers)
    code, text = running.result()
    assert code == 0, text
    assert "KubernetesObject here/dependant created\n" in text
    assert uids(harness.controllers) == made
    assert len(harness.writes()) == 5


def test_an_apply_with_a_shorter_timeout_exits_3_and_says_what_is_missing(harness: WaitHarness) -> None:
    # The objects exist already: the timeout is too short to create them on a busy machine.
    running = harness.start_apply(*four_objects("240s"))
    until_all_wait(running)
    running.child.kill()
    code, text = harness.apply(*four_objects("240s"), timeout="2s")

    assert code == 3
    assert "KubernetesObject here/by-rollout waiting: the controller has not reported yet\n" in text
    assert harness.ready("by-rollout") == ("Waiting", "the controller has not reported yet")
