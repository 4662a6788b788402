"""An object from its first plan to its last, on a real API server."""

from tests.terraform.objects.stage import A, Stage, config_map, declared, valued

BLUE = declared("a", config_map("settings", colour="blue"))
PROTECTED = declared("a", config_map("settings", colour="blue"), "delete_protection = true")
AS_A_VALUE = """{
    apiVersion = "v1"
    kind       = "ConfigMap"
    metadata   = { name = "settings", namespace = "NAMESPACE", labels = null }
    data       = DATA
  }"""


def test_it_is_made_and_nothing_is_left_to_do(stage: Stage) -> None:
    stage.applied(BLUE)

    assert stage.get("configmaps", "settings")["data"] == {"colour": "blue"}
    state = stage.state()
    assert state["projection"] == {"data.colour": "blue"}
    assert state["status"] is None
    assert state["object_ref"] == {
        "api_version": "v1",
        "kind": "ConfigMap",
        "name": "settings",
        "namespace": stage.namespace,
    }


def test_drift_is_shown_from_old_to_new_and_put_back(stage: Stage) -> None:
    stage.applied(BLUE)
    stage.edit("configmaps", "settings", {"data": {"colour": "red"}})
    change = stage.planned()[A]

    assert change.actions == ["update"]
    assert (change.before["projection"], change.after["projection"]) == (
        {"data.colour": "red"},
        {"data.colour": "blue"},
    )
    stage.applied()
    assert stage.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_a_declared_field_that_somebody_removed_comes_back(stage: Stage) -> None:
    stage.applied(BLUE)
    stage.edit("configmaps", "settings", {"data": {"colour": None}})
    change = stage.planned()[A]

    assert (change.before["projection"], change.after["projection"]) == ({}, {"data.colour": "blue"})
    stage.applied()
    assert stage.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_what_is_not_declared_and_how_it_is_written_are_no_change(stage: Stage) -> None:
    stage.applied(BLUE)
    stage.edit("configmaps", "settings", {"data": {"size": "9"}, "metadata": {"labels": {"team": "b"}}})
    stage.is_settled()
    stage.write(
        declared(
            "a",
            """
            # The same in other words.
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

    stage.is_settled()
    stage.destroyed()
    assert stage.get("configmaps", "settings") is None


def test_a_manifest_that_is_a_value_is_made_changed_and_written_as_yaml_in_the_end(stage: Stage) -> None:
    stage.applied(valued("a", AS_A_VALUE.replace("DATA", '{ colour = "blue", size = "1" }')))
    uid = stage.uid("configmaps", "settings")
    stage.write(valued("a", AS_A_VALUE.replace("DATA", '{ colour = "red" }')))
    change = stage.planned()[A]

    assert change.actions == ["update"]
    assert change.after["projection"] == {"data.colour": "red"}
    stage.applied()
    assert stage.get("configmaps", "settings")["data"] == {"colour": "red"}
    stage.applied(declared("a", config_map("settings", colour="red")))
    assert stage.state()["manifest"] is None
    assert stage.uid("configmaps", "settings") == uid


def test_an_object_that_somebody_deleted_is_made_again(stage: Stage) -> None:
    stage.applied(BLUE)
    stage.access.call("DELETE", stage.path("configmaps", "settings"))

    assert stage.planned()[A].actions == ["create"]
    stage.applied()
    assert stage.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_a_protected_object_is_neither_deleted_nor_replaced(stage: Stage) -> None:
    stage.applied(PROTECTED)
    uid = stage.uid("configmaps", "settings")
    destroyed = stage.project.destroy()

    assert (destroyed.code, [one.summary for one in destroyed.diagnostics]) == (1, ["The object is protected"])
    for text in (PROTECTED.replace("name: settings", "name: other"), "\n"):
        summary, detail = stage.refused(text)
        assert summary == "The object is protected"
        assert "delete_protection = false" in detail
    assert stage.uid("configmaps", "settings") == uid
    stage.applied(PROTECTED.replace("true", "false"))
    stage.destroyed()
    assert stage.get("configmaps", "settings") is None
