"""The life of a patch: written, changed, drifted, put back, given up."""

from tests.terraform.objects.workspace import Workspace
from tests.terraform.patches.configurations import (
    BACK,
    P,
    data_of,
    make_config_map,
    managers_of,
    patched,
    warnings_of,
)


def test_a_patch_sets_its_fields_and_gives_them_back(workspace: Workspace) -> None:
    make_config_map(workspace, "settings", {"colour": "red", "size": "1", "kept": "yes"})
    uid = workspace.uid("configmaps", "settings")
    text = patched("a", "settings", 'patch = { data = { colour = "blue", size = "2", extra = "x" } }')
    change = workspace.planned(text)[P]

    assert change.after["projection"] == {"data.colour": "blue", "data.extra": "x", "data.size": "2"}
    hidden = "(hidden, version 1)"
    assert change.after["fields"] == {"data.colour": hidden, "data.extra": hidden, "data.size": "2"}
    workspace.apply_planned()
    assert data_of(workspace, "settings") == {"colour": "blue", "size": "2", "extra": "x", "kept": "yes"}
    id_ = workspace.state(P)["id"]
    assert managers_of(workspace, "configmaps", "settings") == [f"setpoint/terraform-patch/{id_}"]
    assert workspace.state(P)["before"] == {"data.colour": '"red"', "data.extra": None, "data.size": '"1"'}

    # A field that leaves the patch goes back, and the plan says so.
    workspace.write(patched("a", "settings", 'patch = { data = { colour = "green" } }'))
    outcome = workspace.apply()
    assert outcome.code == 0, outcome.diagnostics
    assert 'data.size: "2" -> "1"' in warnings_of(outcome)[P]
    assert "data.extra: (hidden) -> (none)" in warnings_of(outcome)[P]
    assert data_of(workspace, "settings") == {"colour": "green", "size": "1", "kept": "yes"}
    workspace.assert_no_changes()

    # Drift is shown, nothing is written by a read, and an apply puts it back.
    workspace.edit("configmaps", "settings", {"data": {"colour": "pink", "kept": "no"}})
    drifted = workspace.planned()[P]
    assert drifted.before["projection"] == {"data.colour": "pink"}
    assert drifted.after["projection"] == {"data.colour": "green"}
    assert drifted.after["fields"] == {"data.colour": "(hidden, version 4)"}
    assert data_of(workspace, "settings")["colour"] == "pink"
    workspace.apply_planned()
    assert data_of(workspace, "settings") == {"colour": "green", "size": "1", "kept": "no"}

    outcome = workspace.project.destroy()
    assert (outcome.code, [one.summary for one in outcome.diagnostics]) == (0, [BACK])
    assert "data.colour: (hidden) -> (hidden)" in warnings_of(outcome)[P]
    assert data_of(workspace, "settings") == {"colour": "red", "size": "1", "kept": "no"}
    assert managers_of(workspace, "configmaps", "settings") == []
    assert workspace.uid("configmaps", "settings") == uid


def test_many_patches_of_one_object_are_written_at_once(workspace: Workspace) -> None:
    make_config_map(workspace, "settings", {"kept": "yes"})
    forms = ("patch", "merge_patch")
    fields = {f"{form}{index}": form for form in forms for index in range(6)}
    text = "".join(
        patched(name, "settings", f'{form} = {{ data = {{ {name} = "x" }} }}') for name, form in fields.items()
    )
    workspace.applied(text)
    assert data_of(workspace, "settings") == {"kept": "yes", **dict.fromkeys(fields, "x")}

    assert workspace.project.destroy().code == 0
    assert data_of(workspace, "settings") == {"kept": "yes"}
    assert managers_of(workspace, "configmaps", "settings") == []
