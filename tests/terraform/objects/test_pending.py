"""Objects that are there though what they wait for is not: kept, however often Terraform is run."""

import os
import signal
from pathlib import Path

import pytest

from tests.cluster.patience import until
from tests.terraform.command import finished
from tests.terraform.objects.stage import A, B, Stage
from tests.terraform.objects.waits import BOTH, PATIENTLY, WAIT, address_known, service, timed_out

KEPT = [("warning", "The object is kept")]
FIRST_MADE = "lifecycle { create_before_destroy = true }"


def test_a_timeout_keeps_the_object_until_the_value_is_there(stage: Stage) -> None:
    uid = timed_out(stage, BOTH)
    assert (list(stage.project.instances()), address_known(stage)) == ([A], None)
    outcome = stage.plan()
    assert [(one.severity, one.summary) for one in outcome.diagnostics] == KEPT
    assert outcome.actions == {A: "replace", B: "create"}

    assert timed_out(stage) == uid
    assert timed_out(stage) == uid
    stage.give_address("web", "192.0.2.1")
    outcome = stage.apply()
    assert (outcome.code, [(one.severity, one.summary) for one in outcome.diagnostics]) == (0, KEPT)
    stage.is_settled()
    assert (stage.uid("services", "web"), address_known(stage)) == (uid, "192.0.2.1")
    stage.destroyed()
    assert stage.get("services", "web") is None


def test_an_object_that_may_not_be_kept_is_replaced(stage: Stage) -> None:
    failing = service(more=f'{WAIT}\non_timeout = "fail"')
    first = timed_out(stage, failing)
    second = timed_out(stage)

    assert first != second
    assert stage.plan().diagnostics == []
    assert timed_out(stage, service()) != second


def test_a_pending_object_is_destroyed(stage: Stage) -> None:
    timed_out(stage, BOTH)
    stage.destroyed()

    assert stage.get("services", "web") is None
    assert stage.project.instances() == {}


def test_a_pending_object_whose_resource_is_removed_is_deleted(stage: Stage) -> None:
    timed_out(stage, BOTH)
    stage.applied("\n")

    assert stage.get("services", "web") is None


@pytest.mark.parametrize("more", ["", FIRST_MADE])
def test_another_name_replaces_a_pending_object(stage: Stage, more: str) -> None:
    timed_out(stage, service(more=f"{WAIT}\n{more}"))
    stage.write(service(name="other", more=f"{PATIENTLY}\n{more}"))
    with stage.meanwhile("services", "other", lambda: stage.give_address("other", "192.0.2.1")):
        stage.applied()

    assert stage.get("services", "web") is None


def test_a_pending_object_is_safe_where_the_new_one_is_made_first(stage: Stage) -> None:
    uid = timed_out(stage, service(more=f"{WAIT}\n{FIRST_MADE}"))
    assert timed_out(stage) == uid
    assert timed_out(stage) == uid
    stage.give_address("web", "192.0.2.1")
    outcome = stage.apply()

    assert outcome.code == 0, outcome.diagnostics
    stage.is_settled()
    assert stage.uid("services", "web") == uid
    assert "deposed" not in stage.project.instances()[A]


def test_a_pending_object_can_be_changed(stage: Stage) -> None:
    uid = timed_out(stage, service())
    assert timed_out(stage, service(port=81)) == uid
    stage.give_address("web", "192.0.2.1")
    stage.write(service(port=82))
    outcome = stage.apply()

    assert outcome.code == 0, outcome.diagnostics
    stage.is_settled()
    assert (stage.uid("services", "web"), stage.get("services", "web")["spec"]["ports"][0]["port"]) == (uid, 82)


def test_a_pending_object_is_kept_even_when_its_replacement_is_asked_for(stage: Stage) -> None:
    # Terraform asks the very same for what is tainted already: `on_timeout = "fail"` is the way to have it replaced.
    uid = timed_out(stage, service())
    outcome = stage.apply(f"-replace={A}")

    assert [one.summary for one in outcome.diagnostics] == ["The object is kept", "Wait timed out"]
    assert stage.uid("services", "web") == uid


@pytest.mark.parametrize("more", ["", FIRST_MADE])
def test_a_pending_object_is_not_lost_when_an_apply_cannot_even_begin(stage: Stage, more: str) -> None:
    stage.allow("alice")
    as_alice = f'cluster = {{ config_path = "{stage.access.kubeconfig_of("alice")}" }}'
    uid = timed_out(stage, service(more=f"{WAIT}\n{more}\n{as_alice}"))
    assert stage.plan("-out=plan").code == 2
    stage.forbid("alice")
    outcome = stage.project.run("apply", "-json", "plan")

    assert (outcome.code, [one.summary for one in outcome.diagnostics]) == (1, ["Remote refused"])
    stage.allow("alice")
    stage.give_address("web", "192.0.2.1")
    outcome = stage.apply()
    assert outcome.code == 0, outcome.diagnostics
    stage.is_settled()
    assert stage.uid("services", "web") == uid


@pytest.mark.parametrize("is_new", [True, False])
def test_ctrl_c_ends_a_wait_at_once_and_the_next_apply_goes_on(stage: Stage, is_new: bool) -> None:
    if not is_new:
        stage.applied(service(port=79, more=""))
    stage.write(BOTH.replace("3s", "300s"))
    process = stage.project.start("apply", "-json", "-input=false", "-auto-approve")
    until(lambda: _port(stage) == 80)
    os.killpg(process.pid, signal.SIGINT)
    # Nobody has the patience for the whole wait.
    outcome = finished(process)

    assert outcome.code == 1
    assert "Interrupted" in [one.summary for one in outcome.diagnostics]
    uid = stage.uid("services", "web")
    assert stage.state()["object_ref"]["name"] == "web"
    stage.give_address("web", "192.0.2.1")
    outcome = stage.apply()
    assert outcome.code == 0, outcome.diagnostics
    stage.is_settled()
    assert (stage.uid("services", "web"), address_known(stage)) == (uid, "192.0.2.1")


def _port(stage: Stage) -> int | None:
    found = stage.get("services", "web")
    return None if found is None else int(found["spec"]["ports"][0]["port"])


def _children(pid: int) -> list[int]:
    """Whatever thread of it started them."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for one in lists for child in one.read_text().split()]


def test_an_object_is_found_again_after_its_provider_was_killed_in_the_middle(stage: Stage) -> None:
    stage.write(BOTH.replace("3s", "300s"))
    process = stage.project.start("apply", "-json", "-input=false", "-auto-approve")
    until(lambda: _port(stage) == 80)
    for child in _children(process.pid):
        os.kill(child, signal.SIGKILL)
    assert finished(process).code == 1

    uid = stage.uid("services", "web")
    assert stage.project.instances() == {}
    stage.give_address("web", "192.0.2.1")
    stage.write(BOTH)
    outcome = stage.apply()
    assert outcome.code == 0, outcome.diagnostics
    stage.is_settled()
    assert (stage.uid("services", "web"), address_known(stage)) == (uid, "192.0.2.1")
