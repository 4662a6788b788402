"""Who owns a field: two patches, an object of ours, another applier, another writer; and targets that go away."""

from tests.terraform.objects.workspace import Workspace, config_map, declared
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

BLUE = 'patch = { data = { colour = "blue" } }'


def test_two_patches_of_one_field_are_refused_and_of_two_fields_are_not(workspace: Workspace) -> None:
    make_config_map(workspace, "settings", {"colour": "red", "size": "1"})
    both = patched("a", "settings", BLUE) + patched("b", "settings", 'merge_patch = { data = { colour = "pink" } }')
    workspace.write(both)
    (text,) = errors_of(workspace.plan()).values()
    assert "The field is patched already: data.colour: another setpoint_patch of this configuration" in text

    workspace.applied(patched("a", "settings", BLUE) + patched("b", "settings", 'patch = { data = { size = "2" } }'))
    assert data_of(workspace, "settings") == {"colour": "blue", "size": "2"}
    assert len(managers_of(workspace, "configmaps", "settings")) == 2
    id_ = workspace.state(P)["id"]

    # Of another state: the same value, too. A patch of other fields is none of its business.
    other = workspace.another("other")
    same = patched("b", "settings", BLUE)
    other.write(patched("a", "settings", 'json_patch = [{ op = "remove", path = "/data/colour" }]') + same)
    found = errors_of(other.plan())
    assert set(found) == {P, Q}
    assert all(f"the setpoint_patch with the id {id_}" in text for text in found.values())
    other.applied(patched("a", "settings", 'patch = { data = { extra = "x" } }'))

    # What is patched anew under the same name goes back first.
    outcome = workspace.apply(f"-replace={P}")
    assert outcome.code == 0, outcome.diagnostics
    assert workspace.state(P)["id"] != id_
    assert workspace.state(P)["before"] == {"data.colour": '"red"'}
    workspace.assert_no_changes()
    outcome = workspace.project.destroy()
    assert (outcome.code, set(warnings_of(outcome))) == (0, {P, Q})
    assert data_of(workspace, "settings") == {"colour": "red", "size": "1", "extra": "x"}
    assert other.project.destroy().code == 0
    assert data_of(workspace, "settings") == {"colour": "red", "size": "1"}


def test_fields_that_another_writer_has_changed_since_stay_and_the_others_go_back_or_are_left(
    workspace: Workspace,
) -> None:
    data = {"colour": "red", "size": "1", "shape": "round", "kept": "yes"}
    for name in ("a", "b", "c"):
        make_config_map(workspace, name, data)
    fields = 'data = { colour = "blue", size = "2", shape = "square", extra = "x" }'
    text = patched("a", "a", f"patch = {{ {fields} }}") + patched("b", "b", f"merge_patch = {{ {fields} }}")
    text += patched("c", "c", f"patch = {{ {fields} }}", 'on_destroy = "leave"')
    workspace.applied(text)
    for name in ("a", "b"):
        workspace.edit("configmaps", name, {"data": {"colour": "pink"}})
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"shape": "square"}}
    workspace.declare("configmaps", "a", applied, "argocd")
    outcome = workspace.project.destroy()

    assert outcome.code == 0, outcome.diagnostics
    said = warnings_of(outcome)
    assert "data.colour: it was changed by kubectl-edit since" in said[P]
    assert "data.shape: argocd declares it, too" in said[P]
    assert 'data.size: "2" -> "1"' in said[P]
    assert "data.colour: it was changed by kubectl-edit since" in said[Q]
    assert "data.size" in said["setpoint_patch.c"]
    assert [one.summary for one in outcome.diagnostics].count(BACK) == 2
    assert data_of(workspace, "a") == {**data, "colour": "pink", "shape": "square"}
    assert data_of(workspace, "b") == {**data, "colour": "pink"}
    assert data_of(workspace, "c") == {"colour": "blue", "size": "2", "shape": "square", "extra": "x", "kept": "yes"}
    assert [managers_of(workspace, "configmaps", name) for name in ("a", "b", "c")] == [[], [], []]


def test_fields_that_leave_a_patch_are_left_as_they_are_where_it_says_so(workspace: Workspace) -> None:
    make_config_map(workspace, "settings", {"colour": "red", "size": "1"})
    more = 'on_destroy = "leave"'
    workspace.applied(patched("a", "settings", 'patch = { data = { colour = "blue", size = "2" } }', more))
    workspace.write(patched("a", "settings", BLUE, more))
    outcome = workspace.apply()

    assert (outcome.code, [one.summary for one in outcome.diagnostics]) == (0, ["Patched fields stay as they are"])
    assert data_of(workspace, "settings") == {"colour": "blue", "size": "2"}
    workspace.assert_no_changes()


def test_an_applier_is_overruled_by_force_alone_and_an_object_of_ours_never(workspace: Workspace) -> None:
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"colour": "red"}}
    workspace.declare("configmaps", "applied", tree, "argocd")
    workspace.applied(patched("a", "applied", BLUE, "force_conflicts = true"))
    assert data_of(workspace, "applied") == {"colour": "blue"}

    # The other way round: a setpoint_object of another state meets the patch as a field manager.
    objects = workspace.another("objects")
    objects.applied(declared("a", config_map("ours", colour="red")))
    text = patched("a", "applied", BLUE, "force_conflicts = true") + patched(
        "b", "ours", BLUE, "force_conflicts = true"
    )
    workspace.write(text)
    (said,) = errors_of(workspace.plan()).values()
    assert "The object is kept by a setpoint_object" in said
    assert objects.state("setpoint_object.a")["id"] in said
    workspace.declare("configmaps", "applied", tree, "argocd")
    workspace.write(patched("a", "applied", BLUE))
    (said,) = errors_of(workspace.plan()).values()
    assert "data.colour is applied by argocd" in said


def test_a_target_that_was_deleted_or_made_anew_is_told_and_patched_as_a_new_one(workspace: Workspace) -> None:
    for name in ("one", "two"):
        make_config_map(workspace, name, {"colour": "red"})
    text = patched("a", "one", BLUE) + patched("b", "two", BLUE)
    workspace.applied(text)
    for name in ("one", "two"):
        assert workspace.access.call("DELETE", workspace.path("configmaps", name)).status == 200
    make_config_map(workspace, "two", {"colour": "green"})
    outcome = workspace.plan()
    assert "ConfigMap" in warnings_of(outcome)[P]
    assert "deleted and made again" in warnings_of(outcome)[Q]
    assert "There is no such target" in errors_of(outcome)[P]
    assert data_of(workspace, "two") == {"colour": "green"}

    # A destroy, without a refresh, gives nothing back to an object that is another one.
    workspace.write(patched("b", "two", BLUE))
    outcome = workspace.project.run("apply", "-json", "-destroy", "-refresh=false", "-input=false", "-auto-approve")
    assert outcome.code == 0, outcome.diagnostics
    assert data_of(workspace, "two") == {"colour": "green"}
    workspace.applied(patched("b", "two", BLUE))
    assert workspace.state(Q)["before"] == {"data.colour": '"green"'}


def test_another_target_gives_the_fields_of_the_first_back(workspace: Workspace) -> None:
    for name in ("one", "two"):
        make_config_map(workspace, name, {"colour": "red"})
    workspace.applied(
        patched("a", "one", 'patch = { data = { colour = "blue" }, metadata = { labels = { x = "y" } } }')
    )
    change = workspace.planned(patched("a", "two", BLUE))[P]

    assert change.actions == ["delete", "create"]
    workspace.apply_planned()
    assert (data_of(workspace, "one"), data_of(workspace, "two")) == ({"colour": "red"}, {"colour": "blue"})
    assert "labels" not in workspace.get("configmaps", "one")["metadata"]
    # One that Terraform was told to make anew goes back first, though nothing is wrong with it.
    assert workspace.project.run("taint", P).code == 0
    assert workspace.apply().code == 0
    assert workspace.state(P)["before"] == {"data.colour": '"red"'}
    workspace.assert_no_changes()
    workspace.write(
        patched("a", "two", BLUE) + 'import {\n  to = setpoint_patch.b\n  id = "x"\n}\n' + patched("b", "one", BLUE)
    )
    assert "A patch cannot be imported" in str(workspace.plan().diagnostics)


def test_what_kubectl_applied_stays_with_kubectl(workspace: Workspace) -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    metadata = {"name": "settings", "namespace": workspace.namespace, "annotations": applied}
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": "red", "size": "1"}}
    path = f"{workspace.path('configmaps')}?fieldManager=kubectl-client-side-apply"
    assert workspace.access.call("POST", path, tree).status == 201

    workspace.applied(patched("a", "settings", 'patch = { data = { size = "2" } }'))

    assert data_of(workspace, "settings") == {"colour": "red", "size": "2"}
    entries = workspace.get("configmaps", "settings")["metadata"]["managedFields"]
    assert "kubectl-client-side-apply" in [one["manager"] for one in entries]
    assert workspace.project.destroy().code == 0
    assert data_of(workspace, "settings") == {"colour": "red", "size": "1"}
