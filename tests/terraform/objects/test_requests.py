"""The requests that the commands of Terraform send to the API server, discovery included."""

from collections import Counter

import pytest

from tests.terraform.objects.counted_commands import CountedCommands
from tests.terraform.objects.counting_proxy import APPLY, DELETE, DISCOVERY, DRY_RUN, READ
from tests.terraform.objects.manifests import CUSTOM, DEFINITION
from tests.terraform.objects.waits import service
from tests.terraform.objects.workspace import config_map, declared
from tests.terraform.patches.configurations import make_config_map, patched

MANY = 50


def test_an_unchanged_object_costs_one_request_a_create_four_and_an_update_five(commands: CountedCommands) -> None:
    commands.write(declared("a", config_map("one", a="b")))
    create = commands.plan(has_changes=True), commands.apply()
    unchanged = commands.unchanged()
    commands.write(declared("a", config_map("one", a="c")))
    update = commands.plan(has_changes=True), commands.apply()
    again = commands.unchanged()
    assert commands.workspace.get("configmaps", "one")["data"] == {"a": "c"}
    destroy = commands.apply("-destroy", "-auto-approve")

    assert create == ([DRY_RUN], [DRY_RUN, READ, APPLY])
    assert unchanged == again == ([READ], [], [READ])
    assert update == ([READ, DRY_RUN], [READ, DRY_RUN, APPLY])
    # To plan it, to know that it is still ours, to delete it, and to see that it is gone.
    assert destroy == [READ, READ, DELETE, READ]


def test_an_object_that_is_waited_for_and_changes_its_status_costs_one_request_as_well(
    commands: CountedCommands,
) -> None:
    commands.write(service(more='wait_for = { field = "spec.clusterIP" }'))
    commands.apply("-auto-approve")
    unchanged = commands.unchanged()
    commands.workspace.give_address("web", "192.0.2.1")

    assert unchanged == commands.unchanged() == ([READ], [], [READ])


def test_drift_costs_dry_runs_and_what_others_own_costs_none(commands: CountedCommands) -> None:
    commands.write(declared("a", config_map("one", a="b")))
    commands.apply("-auto-approve")
    commands.workspace.edit("configmaps", "one", {"data": {"theirs": "1"}})
    beside = commands.plan(has_changes=False)
    commands.workspace.edit("configmaps", "one", {"data": {"a": "drifted"}})
    drift = commands.plan(has_changes=True), commands.apply()

    assert beside == [READ]
    # Another writer has only updated the field, and applies nothing: one dry run shows what the forced apply comes to.
    assert drift == ([READ, DRY_RUN], [READ, DRY_RUN, APPLY])
    assert commands.workspace.get("configmaps", "one")["data"] == {"a": "b", "theirs": "1"}
    assert commands.unchanged() == ([READ], [], [READ])


def test_a_custom_kind_is_looked_up_when_it_is_made_and_known_from_the_state_later(commands: CountedCommands) -> None:
    group = f"{commands.workspace.namespace}.example.com"
    commands.workspace.define(DEFINITION.replace("GROUP", group))
    commands.write(declared("a", CUSTOM.replace("GROUP", group)))
    create = commands.plan(has_changes=True), commands.apply()
    unchanged = commands.unchanged()
    commands.write(declared("a", CUSTOM.replace("GROUP", group).replace("{host: www}", "{host: ftp}")))
    update = commands.plan(has_changes=True), commands.apply()

    assert create == ([DISCOVERY, DRY_RUN], [DISCOVERY, DRY_RUN, READ, APPLY])
    assert unchanged == ([READ], [], [READ])
    assert update == ([READ, DRY_RUN], [READ, DRY_RUN, APPLY])


def test_fifty_objects_of_a_kind_share_its_discovery(commands: CountedCommands) -> None:
    # It is not among the kinds that are known by themselves.
    slices = """
    apiVersion: discovery.k8s.io/v1
    kind: EndpointSlice
    metadata: {name: "slice-${count.index}", namespace: NAMESPACE}
    addressType: IPv4
    endpoints: []
    """
    commands.write(declared("a", slices, f"count = {MANY}"))
    create = Counter(commands.plan(has_changes=True)), Counter(commands.apply())
    unchanged = [Counter(one) for one in commands.unchanged()]

    assert create == ({DISCOVERY: 1, DRY_RUN: MANY}, {DISCOVERY: 1, DRY_RUN: MANY, READ: MANY, APPLY: MANY})
    assert unchanged == [{READ: MANY}, {}, {READ: MANY}]


@pytest.mark.parametrize("form", ["patch", "merge_patch"])
def test_an_unchanged_patch_costs_one_request(commands: CountedCommands, form: str) -> None:
    make_config_map(commands.workspace, "target", {"a": "b"})
    commands.write(patched("a", "target", f'{form} = {{ data = {{ colour = "blue" }} }}'))
    create = commands.plan(has_changes=True), commands.apply()
    unchanged = commands.unchanged()
    commands.write(patched("a", "target", f'{form} = {{ data = {{ colour = "red" }} }}'))
    update = commands.plan(has_changes=True), commands.apply()

    assert unchanged == ([READ], [], [READ])
    # An apply patch is put to a dry run under its own field manager as well, which a new one has from its create on.
    assert create == ([READ, DRY_RUN], [READ, *[DRY_RUN] * (3 if form == "patch" else 2), APPLY])
    assert update == ([READ, DRY_RUN], [READ, DRY_RUN, DRY_RUN, APPLY])
    assert commands.workspace.get("configmaps", "target")["data"] == {"a": "b", "colour": "red"}
