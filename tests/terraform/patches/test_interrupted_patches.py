"""Patches that are waited for, interrupted, killed, and planned before all is known: nothing of before is lost."""

import os
import signal
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cluster.polling import until
from tests.terraform.command import finished
from tests.terraform.objects.workspace import Workspace
from tests.terraform.patches.configurations import (
    BACK,
    P,
    Q,
    data_of,
    errors_of,
    make_config_map,
    managers_of,
    patched,
    warnings_of,
)
from tests.terraform.processes import children

BLUE = 'patch = { data = { colour = "blue", extra = "x" } }'
MERGE = BLUE.replace("patch", "merge_patch")
WAIT = 'wait_for = { field = "data.ready", timeout = "1s" }'
LONG_WAIT = 'wait_for = { field = "data.ready", timeout = "300s" }'


def _killed_when_patched(workspace: Workspace, name: str, colour: str) -> None:
    process = workspace.project.start("apply", "-json", "-input=false", "-auto-approve")
    until(lambda: data_of(workspace, name).get("colour") == colour)
    for child in children(process.pid):
        os.kill(child, signal.SIGKILL)
    assert finished(process).code == 1


@pytest.mark.parametrize("patch", [BLUE, MERGE])
def test_what_was_before_survives_a_killed_provider(workspace: Workspace, patch: str) -> None:
    make_config_map(workspace, "settings", {"colour": "red", "size": "1"})
    others = _notes(workspace)
    workspace.write(patched("a", "settings", patch, LONG_WAIT))
    _killed_when_patched(workspace, "settings", "blue")
    assert workspace.project.instances() == {}
    left = _notes(workspace, others)
    assert {stat.S_IMODE(one.stat().st_mode) for one in left} == {0o600}
    # Killed while it notes the write, it leaves the unfinished file beside the note of before; both are gone below.
    assert len([one for one in left if not one.name.startswith(".")]) == 1

    workspace.applied(patched("a", "settings", patch))
    assert workspace.state(P)["before"] == {"data.colour": '"red"', "data.extra": None}
    assert len(managers_of(workspace, "configmaps", "settings")) == 1
    assert _notes(workspace, others) == []

    # The same in an update, with a field that is new.
    more = patched("a", "settings", patch.replace('"blue"', '"green", size = "2"'), LONG_WAIT)
    workspace.write(more)
    _killed_when_patched(workspace, "settings", "green")
    workspace.applied(more.replace(LONG_WAIT, ""))
    assert workspace.state(P)["before"] == {"data.colour": '"red"', "data.extra": None, "data.size": '"1"'}
    assert workspace.project.destroy().code == 0
    assert data_of(workspace, "settings") == {"colour": "red", "size": "1"}
    assert _notes(workspace, others) == []


def _notes(workspace: Workspace, others: Sequence[Path] = ()) -> list[Path]:
    """The notes of patches, without those of `others`: tests of one process share them."""
    folder = Path(workspace.installation.environment["HOME"], ".cache", "setpoint", "terraform", "patches")
    return [one for one in folder.glob("*/*") if one.is_file() and one not in others]


def test_a_failed_wait_keeps_the_patch_and_its_value_comes_later(workspace: Workspace) -> None:
    make_config_map(workspace, "settings", {"colour": "red"})
    text = patched("a", "settings", BLUE, WAIT) + f'output "ready" {{ value = {P}.status }}\n'
    workspace.write(text)
    assert workspace.apply().code == 1
    id_ = workspace.state(P)["id"]
    outcome = workspace.apply()
    (said,) = errors_of(outcome).values()
    assert [word for word in ("data.ready", "goes on waiting") if word not in said] == []
    assert managers_of(workspace, "configmaps", "settings") == [f"setpoint/terraform-patch/{id_}"]
    assert [one.summary for one in outcome.diagnostics if one.severity == "warning"] == ["The patch is kept"]

    workspace.edit("configmaps", "settings", {"data": {"ready": "yes"}})
    outcome = workspace.apply()
    assert outcome.code == 0, outcome.diagnostics
    workspace.assert_no_changes()
    assert workspace.state(P)["status"]["value"] == {"data": {"ready": "yes"}}
    assert (workspace.state(P)["id"], workspace.state(P)["before"]["data.colour"]) == (id_, '"red"')
    # A value that disappears is waited for again.
    workspace.edit("configmaps", "settings", {"data": {"ready": None}})
    outcome = workspace.apply()
    assert (outcome.code, outcome.actions) == (1, {P: "update"})
    outcome = workspace.project.destroy()
    assert [one.summary for one in outcome.diagnostics] == [BACK]
    assert data_of(workspace, "settings") == {"colour": "red"}


def test_a_failed_wait_takes_the_patch_back_where_it_says_so(workspace: Workspace) -> None:
    make_config_map(workspace, "settings", {"colour": "red"})
    workspace.write(patched("a", "settings", BLUE, f'{WAIT}\n  on_timeout = "fail"'))
    assert workspace.apply().code == 1
    first = workspace.state(P)["id"]
    outcome = workspace.apply()

    assert (outcome.code, outcome.actions) == (1, {P: "replace"})
    assert workspace.state(P)["id"] != first
    assert workspace.state(P)["before"] == {"data.colour": '"red"', "data.extra": None}
    assert len(managers_of(workspace, "configmaps", "settings")) == 1


LATER = """
resource "terraform_data" "x" {
  input = { name = "settings", path = "KUBECONFIG" }
}
resource "terraform_data" "y" {
  input = "blue"
}
"""


def test_what_is_unknown_at_plan_is_applied_in_one_run(workspace: Workspace) -> None:
    make_config_map(workspace, "settings", {"colour": "red"})
    make_config_map(workspace, "second", {"colour": "red"})
    named = patched("a", "settings", "patch = { data = { colour = terraform_data.y.output } }")
    named = named.replace('"settings"', "terraform_data.x.output.name")
    elsewhere = patched("b", "second", MERGE, "cluster = { config_path = terraform_data.x.output.path }")
    change = workspace.planned(LATER + named + elsewhere)
    assert (change[P].unknown["projection"], change[Q].unknown["projection"]) == (True, True)
    workspace.apply_planned()
    assert (data_of(workspace, "settings")["colour"], data_of(workspace, "second")["extra"]) == ("blue", "x")

    change = workspace.planned(LATER.replace("blue", "green") + named + elsewhere)
    assert (change[P].actions, change[P].unknown["projection"]) == (["update"], True)
    workspace.apply_planned()
    assert data_of(workspace, "settings") == {"colour": "green"}
    assert workspace.project.destroy().code == 0
    assert (data_of(workspace, "settings"), data_of(workspace, "second")) == ({"colour": "red"}, {"colour": "red"})


def test_a_target_that_comes_later_is_waited_for_and_the_apply_fails_without_it(workspace: Workspace) -> None:
    workspace.write(patched("a", "later", BLUE, 'target_timeout = "1s"'))
    outcome = workspace.apply()
    assert (outcome.code, list(outcome.actions)) == (1, [P])
    assert "There is no such target" in errors_of(outcome)[P]

    workspace.write(patched("a", "later", BLUE, 'target_timeout = "5m"'))
    outcome = workspace.project.apply_until_started(P, lambda: make_config_map(workspace, "later", {"colour": "red"}))
    assert outcome.code == 0, outcome.diagnostics
    assert data_of(workspace, "later") == {"colour": "blue", "extra": "x"}
    workspace.assert_no_changes()


def test_values_of_a_secret_are_shown_nowhere(workspace: Workspace) -> None:
    workspace.make("secrets", {"metadata": {"name": "login"}, "data": {"password": "b2xkZXI="}})
    text = patched("a", "login", 'patch = { stringData = { password = sensitive("s3cret") } }', kind="Secret")
    changes = workspace.planned(text)
    shown, _ = workspace.project.start("show", "-no-color", "plan").communicate()
    workspace.apply_planned()
    destroy = workspace.project.destroy()
    said = str([(one.summary, one.detail) for one in destroy.diagnostics]) + shown + str(changes[P].after["projection"])

    assert "data.password" in said
    assert [word for word in ("s3cret", "czNjcmV0", "older", "b2xkZXI") if word in said] == []
    assert workspace.get("secrets", "login")["data"] == {"password": "b2xkZXI="}
    wrong = patched("a", "login", 'merge_patch = { data = { password = sensitive("no base64!") } }', kind="Secret")
    workspace.write(wrong)
    (refused,) = errors_of(workspace.plan()).values()
    assert "no base64!" not in refused
    assert "login" in refused


def test_a_cluster_that_does_not_answer_is_a_warning_of_the_plan(workspace: Workspace) -> None:
    make_config_map(workspace, "settings", {"colour": "red"})
    gone = 'cluster = { host = "https://127.0.0.1:1", insecure = true, token = "x" }'
    workspace.write(patched("a", "settings", BLUE) + patched("b", "settings", BLUE, gone))
    outcome = workspace.plan()

    assert (outcome.code, set(outcome.actions)) == (2, {P, Q}), outcome.diagnostics
    assert "127.0.0.1:1" in warnings_of(outcome)[Q]


# Forms whose values, or whose fields, follow from what the object has, and forms whose do not.
ALL_FORMS = {
    "plain": 'patch = { data = { colour = "COLOUR" } }',
    "merge": 'merge_patch = { data = { colour = "COLOUR", size = null } }',
    "replace": 'json_patch = [{ op = "replace", path = "/data/colour", value = "COLOUR" }]',
    "copy": 'json_patch = [{ op = "copy", from = "/data/size", path = "/data/COLOUR" }]',
    "labels": 'json_patch = [{ op = "add", path = "/metadata/labels", value = { hue = "COLOUR" } }]',
}


@pytest.mark.parametrize("is_new", [True, False])
def test_an_object_that_changes_between_plan_and_apply_is_patched_all_the_same(
    workspace: Workspace, is_new: bool
) -> None:
    for name in ALL_FORMS:
        make_config_map(workspace, name, {"colour": "red", "size": "1"})
    text = "".join(patched(name, name, patch) for name, patch in ALL_FORMS.items())
    if not is_new:
        workspace.applied(text.replace("COLOUR", "blue"))
    workspace.planned(text.replace("COLOUR", "green"))
    for name in ALL_FORMS:
        edit = {"metadata": {"labels": {"other": "x"}}, "data": {"colour": "pink", "size": "2", "more": "x"}}
        workspace.edit("configmaps", name, edit)
    outcome = workspace.project.run("apply", "-json", "-input=false", "plan")

    assert (outcome.code, errors_of(outcome)) == (0, {})
    workspace.assert_no_changes()
    assert [data_of(workspace, name)["colour"] for name in ("plain", "merge", "replace")] == ["green"] * 3
    assert (data_of(workspace, "copy")["green"], "size" in data_of(workspace, "merge")) == ("2", False)
    assert workspace.get("configmaps", "labels")["metadata"]["labels"]["hue"] == "green"


def test_other_attributes_change_while_another_writer_changes_a_field(workspace: Workspace) -> None:
    for name in ALL_FORMS:
        make_config_map(workspace, name, {"colour": "red", "size": "1"})
    text = "".join(patched(name, name, patch, "MORE") for name, patch in ALL_FORMS.items()).replace("COLOUR", "blue")
    workspace.applied(text.replace("MORE", ""))
    workspace.planned(text.replace("MORE", 'on_destroy = "leave"'))
    for name in ALL_FORMS:
        workspace.edit(
            "configmaps", name, {"metadata": {"labels": {"hue": "x"}}, "data": {"colour": "pink", "blue": "9"}}
        )
    outcome = workspace.project.run("apply", "-json", "-input=false", "plan")

    assert (outcome.code, errors_of(outcome)) == (0, {})
    workspace.assert_no_changes()
