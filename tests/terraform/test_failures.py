"""What the user sees, and what the state keeps, when something goes wrong: with the real Terraform."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.polling import until
from tests.terraform.command import Diagnostic, Outcome, Project, finished
from tests.terraform.conftest import NewProject
from tests.terraform.probe.thing import SECRET
from tests.terraform.processes import process_group
from tests.terraform.texts import thing

MISTAKES = """
resource "probe_thing" "deep" {
  name  = "deep"
  rules = [{ port = 1 }, { port = 0 }]
}
data "probe_lookup" "a" {
  name = ""
}
output "a" {
  value = provider::probe::describe("forbidden")
}
"""


def test_a_mistake_is_shown_at_its_attribute_or_argument(new_project: NewProject) -> None:
    project = new_project(thing(size="-1") + MISTAKES)
    shown = {one.summary: one for one in project.plan().diagnostics}

    assert shown["Too small"] == Diagnostic("error", "Too small", "size is -1", "size = -1")
    assert shown["A thing has a name"] == Diagnostic("error", "A thing has a name", "", 'name = ""')
    deep = shown["No such port"]
    assert deep.detail == "0 is none"
    # Older versions show the whole resource.
    assert deep.line in ("rules = [{ port = 1 }, { port = 0 }]", 'resource "probe_thing" "deep" {')
    assert "it must not be forbidden" in shown["Invalid function argument"].detail
    assert len(shown) == 4


def test_a_warning_is_shown_and_stops_nothing(new_project: NewProject) -> None:
    project = new_project(thing(behaviour='"warn"'))
    applied = project.apply()

    assert applied.code == 0
    assert Diagnostic("warning", "Think twice", "It is only a probe.", 'behaviour = "warn"') in applied.diagnostics


def test_a_provider_is_refused_at_its_own_block(new_project: NewProject) -> None:
    project = new_project(thing().replace('folder = "OBJECTS"', 'folder = ""'))

    assert project.plan().diagnostics == [Diagnostic("error", "A folder has a name", "", 'folder = ""')]


def test_a_setpoint_error_is_shown_with_its_message(new_project: NewProject) -> None:
    project = new_project(thing(behaviour='"unavailable"'))
    applied = project.apply()

    assert [(one.summary, one.detail) for one in applied.diagnostics] == [
        ("Remote unavailable", "GET /things: connection refused")
    ]
    assert project.objects() == []
    assert project.instances() == {}


@pytest.mark.parametrize(("behaviour", "made"), [("bug", ["a", "b"]), ("bug in plan", [])])
def test_a_bug_is_reported_without_any_secret_and_the_provider_keeps_running(
    new_project: NewProject, behaviour: str, made: list[str]
) -> None:
    other = 'resource "probe_thing" "b" {\n  name = "b"\n}\n'
    project = new_project(thing(behaviour=f'"{behaviour}"', password=f'"{SECRET}"') + other)
    logged = Project(project.installation, project.folder, {"TF_LOG_PROVIDER": "TRACE"})
    applied = logged.apply()

    assert applied.code == 1
    assert [one.summary for one in applied.diagnostics if one.severity == "error"] == ["A mistake of the provider"]
    assert "ZeroDivisionError in" in applied.diagnostics[0].detail
    assert SECRET not in str(applied.events)
    assert "[ERROR] provider.terraform-provider-probe_v1.0.0: bug: " in applied.errors
    assert f"the password is {SECRET}" not in applied.errors
    assert project.objects() == made


def test_the_state_saved_before_a_failure_is_kept(new_project: NewProject) -> None:
    project = new_project(thing(behaviour='"stubborn"'))
    applied = project.apply()
    kept = project.instances()["probe_thing.a"]

    assert [one.detail for one in applied.diagnostics] == ["the rest of it went wrong"]
    assert (kept["status"], kept["attributes"]["id"], kept["private"]) == ("tainted", "thing-a", "aGFsZg==")
    assert project.plan().actions == {"probe_thing.a": "replace"}


def test_an_update_that_fails_leaves_the_prior_state(new_project: NewProject) -> None:
    project = new_project(thing(size="1"))
    project.apply()
    project.write(thing(size="2", behaviour='"no update"'))
    applied = project.apply()
    kept = project.instances()["probe_thing.a"]

    assert applied.code == 1
    assert (kept.get("status"), kept["attributes"]["size"]) == (None, 1)


def test_a_deletion_that_fails_leaves_the_object_in_the_state(new_project: NewProject) -> None:
    project = new_project(thing(behaviour='"no deletion"'))
    project.apply()
    destroyed = project.destroy()

    assert destroyed.code == 1
    assert list(project.instances()) == ["probe_thing.a"]
    assert project.objects() == ["a"]


def _interrupt_terraform_alone(process: "subprocess.Popen[str]") -> None:
    os.kill(process.pid, signal.SIGINT)


def _press_ctrl_c(process: "subprocess.Popen[str]") -> None:
    os.killpg(process.pid, signal.SIGINT)


def _end_all_processes(process: "subprocess.Popen[str]") -> None:
    os.killpg(process.pid, signal.SIGTERM)


def _end_the_provider_alone(process: "subprocess.Popen[str]") -> None:
    (provider,) = [one for one in process_group(process.pid) if one != process.pid]
    os.kill(provider, signal.SIGTERM)


@pytest.mark.parametrize(
    "interrupt", [_interrupt_terraform_alone, _press_ctrl_c, _end_all_processes, _end_the_provider_alone]
)
def test_an_interrupted_apply_ends_at_once_and_keeps_the_state(
    new_project: NewProject, interrupt: Callable[["subprocess.Popen[str]"], None]
) -> None:
    project = new_project(thing(behaviour='"slow"'))
    applied = _interrupted_apply(project, interrupt)
    kept = project.instances()["probe_thing.a"]

    assert applied.code == 1
    assert "Interrupted" in [one.summary for one in applied.diagnostics]
    assert (kept["attributes"]["id"], kept["private"]) == ("thing-a", "aGFsZg==")


def test_a_provider_ends_when_its_terraform_is_killed(new_project: NewProject) -> None:
    project = new_project(thing(behaviour='"slow"'))
    process = project.start("apply", "-json", "-auto-approve")
    until((project.object_folder / "waiting.json").exists)
    providers = [one for one in process_group(process.pid) if one != process.pid]
    process.kill()
    process.communicate()

    assert providers
    until(lambda: not any(Path(f"/proc/{one}").exists() for one in providers))


def _interrupted_apply(project: Project, interrupt: Callable[["subprocess.Popen[str]"], None]) -> Outcome:
    process = project.start("apply", "-json", "-input=false", "-auto-approve")
    until((project.object_folder / "waiting.json").exists)
    interrupt(process)
    return finished(process)
