"""Two applies at once of one configuration: each ends in success or in an error of ours, and nothing is lost."""

import subprocess
from pathlib import Path
from typing import Final

from tests.terraform.command import Outcome, finished
from tests.terraform.objects.workspace import Workspace, config_map, declared, valued
from tests.terraform.patches.configurations import make_config_map, patched

COUNT: Final = 6
# What the one that came second may say: of an object that the first one has, and of a field that its patch owns.
OURS: Final = {
    "The object is there already",
    "The object is kept by another resource",
    "Management conflict",
    "The plan no longer holds",
    "The result is not as planned",
    "The field is patched already",
}
_APPLY: Final = ("apply", "-json", "-input=false", "-auto-approve")
_SECRET: Final = """{
  apiVersion = "v1"
  kind       = "Secret"
  metadata   = { name = "login", namespace = "NAMESPACE" }
  stringData = { password = terraform_data.x.output }
}"""


def _configuration(colour: str) -> str:
    text = f'resource "terraform_data" "x" {{ input = "{colour}" }}\n' + valued("secret", _SECRET)
    text += "".join(declared(f"r{one}", config_map(f"r{one}", colour=colour)) for one in range(COUNT))
    return text + patched("p", "theirs", f'patch = {{ data = {{ colour = "{colour}" }} }}')


def _both(first: "subprocess.Popen[str]", second: "subprocess.Popen[str]") -> tuple[Outcome, Outcome]:
    return finished(first), finished(second)


def _errors(outcome: Outcome) -> dict[str, str]:
    """The summary of each error, by address: every one is ours."""
    shown = [one for one in outcome.diagnostics if one.severity == "error"]
    assert [f"{one.summary}: {one.detail}" for one in shown if one.summary not in OURS] == []
    return {one.address: one.summary for one in shown}


def test_of_two_states_one_has_each_object_and_the_other_says_so(workspace: Workspace) -> None:
    make_config_map(workspace, "theirs", {"colour": "red"})
    other = workspace.another("other")
    for one in (workspace, other):
        one.write(_configuration("blue"))
    outcomes = _both(workspace.project.start(*_APPLY), other.project.start(*_APPLY))
    errors = [_errors(one) for one in outcomes]

    # Each object is in one of the states, and the error about it is in the other.
    names = {f"setpoint_object.{one}" for one in ("secret", *(f"r{one}" for one in range(COUNT)))}
    states = [one.project.instances() if _has_state(one.folder) else {} for one in (workspace, other)]
    kept = [{name for name in names if name in state} for state in states]
    assert kept[0] | kept[1] == names
    assert not kept[0] & kept[1]
    assert [{name for name in found if name in names} for found in errors] == [kept[1], kept[0]]
    # A destroy plans first: the patch that is in a state goes before another one can be planned.
    patches = ["setpoint_patch.p" in state for state in states]
    assert patches != [True, True]
    for one in (workspace, other) if patches[0] else (other, workspace):
        assert one.project.destroy().code == 0
    assert [workspace.get("configmaps", f"r{one}") for one in range(COUNT)] == [None] * COUNT
    assert workspace.get("configmaps", "theirs")["data"] == {"colour": "red"}


def _has_state(folder: Path) -> bool:
    return (folder / "terraform.tfstate").exists()


def test_one_state_without_a_lock_is_applied_by_both_or_an_error_says_why_not(workspace: Workspace) -> None:
    make_config_map(workspace, "theirs", {"colour": "red"})
    workspace.applied(_configuration("blue"))
    workspace.write(_configuration("green"))
    start = (*_APPLY, "-lock=false")
    for one in _both(workspace.project.start(*start), workspace.project.start(*start)):
        _errors(one)

    # Whichever state was stored last: one apply makes it whole.
    outcome = workspace.apply()
    assert (outcome.code, _errors(outcome)) == (0, {})
    workspace.assert_no_changes()
    assert [workspace.get("configmaps", f"r{one}")["data"] for one in range(COUNT)] == [{"colour": "green"}] * COUNT
