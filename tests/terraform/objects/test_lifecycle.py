"""The lifecycle of an object on a real API server: create, drift, update, delete."""

from tests.terraform.objects.workspace import A, Workspace, config_map, declared, valued

BLUE = declared("a", config_map("settings", colour="blue"))
PROTECTED = declared("a", config_map("settings", colour="blue"), "delete_protection = true")
AS_A_VALUE = """{
    apiVersion = "v1"
    kind       = "ConfigMap"
    metadata   = { name = "settings", namespace = "NAMESPACE", labels = null }
    data       = DATA
  }"""


def test_an_object_is_created_and_needs_no_change(workspace: Workspace) -> None:
    workspace.applied(BLUE)

    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue"}
    state = workspace.state()
    assert state["projection"] == {"data.colour": "blue"}
    assert state["status"] is None
    assert state["object_ref"] == {
        "api_version": "v1",
        "kind": "ConfigMap",
        "name": "settings",
        "namespace": workspace.namespace,
    }


def test_drift_is_shown_with_both_values_and_reverted(workspace: Workspace) -> None:
    workspace.applied(BLUE)
    workspace.edit("configmaps", "settings", {"data": {"colour": "red"}})
    change = workspace.planned()[A]

    assert change.actions == ["update"]
    assert (change.before["projection"], change.after["projection"]) == (
        {"data.colour": "red"},
        {"data.colour": "blue"},
    )
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_a_declared_field_that_another_writer_removed_is_restored(workspace: Workspace) -> None:
    workspace.applied(BLUE)
    workspace.edit("configmaps", "settings", {"data": {"colour": None}})
    change = workspace.planned()[A]

    assert (change.before["projection"], change.after["projection"]) == ({}, {"data.colour": "blue"})
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_undeclared_fields_and_another_notation_are_no_change(workspace: Workspace) -> None:
    workspace.applied(BLUE)
    workspace.edit("configmaps", "settings", {"data": {"size": "9"}, "metadata": {"labels": {"team": "b"}}})
    workspace.assert_no_changes()
    workspace.write(
        declared(
            "a",
            """
            # The same, written differently.
            kind: ConfigMap
            apiVersion: "v1"
            data:
              colour: 'blue'
            metadata:
              namespace: NAMESPACE
              name: settings
            """,
        )
    )

    workspace.assert_no_changes()
    workspace.destroyed()
    assert workspace.get("configmaps", "settings") is None


def test_a_manifest_value_is_created_updated_and_converted_to_yaml(workspace: Workspace) -> None:
    workspace.applied(valued("a", AS_A_VALUE.replace("DATA", '{ colour = "blue", size = "1" }')))
    uid = workspace.uid("configmaps", "settings")
    workspace.write(valued("a", AS_A_VALUE.replace("DATA", '{ colour = "red" }')))
    change = workspace.planned()[A]

    assert change.actions == ["update"]
    assert change.after["projection"] == {"data.colour": "red"}
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "red"}
    workspace.applied(declared("a", config_map("settings", colour="red")))
    assert workspace.state()["manifest"] is None
    assert workspace.uid("configmaps", "settings") == uid


def test_an_object_that_another_writer_deleted_is_created_again(workspace: Workspace) -> None:
    workspace.applied(BLUE)
    workspace.access.call("DELETE", workspace.path("configmaps", "settings"))

    assert workspace.planned()[A].actions == ["create"]
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_a_protected_object_is_neither_deleted_nor_replaced(workspace: Workspace) -> None:
    workspace.applied(PROTECTED)
    uid = workspace.uid("configmaps", "settings")
    destroyed = workspace.project.destroy()

    assert (destroyed.code, [one.summary for one in destroyed.diagnostics]) == (1, ["The object is protected"])
    for text in (PROTECTED.replace("name: settings", "name: other"), "\n"):
        summary, detail = workspace.refused(text)
        assert summary == "The object is protected"
        assert "delete_protection = false" in detail
    assert workspace.uid("configmaps", "settings") == uid
    workspace.applied(PROTECTED.replace("true", "false"))
    workspace.destroyed()
    assert workspace.get("configmaps", "settings") is None
