"""Another writer comes between the plan that Terraform makes when it applies, and the write that relies on it."""

import pytest

from tests.terraform.command import Outcome
from tests.terraform.objects.counted_commands import CountedCommands
from tests.terraform.objects.counting_proxy import DRY_RUN, CountingProxy
from tests.terraform.objects.workspace import Workspace, config_map, declared

BLUE, RED = (declared("a", config_map("one", colour=colour)) for colour in ("blue", "red"))


@pytest.fixture
def proxy(commands: CountedCommands) -> CountingProxy:
    return commands.proxy


def _applied(commands: CountedCommands) -> list[str]:
    """The summaries of the errors of an apply of the kept plan: none is Terraform's own about this provider."""
    outcome: Outcome = commands.workspace.project.run("apply", "-json", "-input=false", "plan")
    summaries = [one.summary for one in outcome.diagnostics if one.severity == "error"]
    assert [one for one in summaries if "Provider" in one] == []
    assert commands.proxy.interventions == {}
    return summaries


def _planned_update(commands: CountedCommands) -> None:
    commands.write(BLUE)
    commands.apply("-auto-approve")
    commands.write(RED)
    commands.plan(has_changes=True)


def test_a_field_beside_ours_stays(commands: CountedCommands, proxy: CountingProxy, workspace: Workspace) -> None:
    _planned_update(commands)
    proxy.interventions[DRY_RUN] = lambda: workspace.edit("configmaps", "one", {"data": {"size": "1"}})

    assert _applied(commands) == []
    assert workspace.get("configmaps", "one")["data"] == {"colour": "red", "size": "1"}
    commands.plan(has_changes=False)


def test_an_object_that_is_made_again_is_left_alone(
    commands: CountedCommands, proxy: CountingProxy, workspace: Workspace
) -> None:
    _planned_update(commands)

    def make_again() -> None:
        assert workspace.access.call("DELETE", workspace.path("configmaps", "one")).status == 200
        workspace.make("configmaps", {"metadata": {"name": "one"}, "data": {"size": "theirs"}})

    proxy.interventions[DRY_RUN] = make_again

    assert len(_applied(commands)) == 1
    assert workspace.get("configmaps", "one")["data"] == {"size": "theirs"}


def test_an_object_that_is_deleted_is_made(
    commands: CountedCommands, proxy: CountingProxy, workspace: Workspace
) -> None:
    _planned_update(commands)

    def delete() -> None:
        assert workspace.access.call("DELETE", workspace.path("configmaps", "one")).status == 200

    proxy.interventions[DRY_RUN] = delete

    assert _applied(commands) == []
    assert workspace.get("configmaps", "one")["data"] == {"colour": "red"}
    commands.plan(has_changes=False)


def test_a_new_object_that_another_writer_makes_first_is_left_alone(
    commands: CountedCommands, proxy: CountingProxy, workspace: Workspace
) -> None:
    commands.write(RED)
    commands.plan(has_changes=True)
    theirs = {"metadata": {"name": "one"}, "data": {"colour": "theirs"}}
    proxy.interventions[DRY_RUN] = lambda: workspace.make("configmaps", theirs)

    assert len(_applied(commands)) == 1
    assert workspace.get("configmaps", "one")["data"] == {"colour": "theirs"}
