"""Changes that take a new object, and wishes for one."""

import pytest

from tests.cluster.server import Cluster
from tests.terraform.objects.stage import A, Stage, config_map, declared

SETTINGS = declared("a", config_map("settings", colour="blue"))
FIRST_MADE = "lifecycle { create_before_destroy = true }"
SECRET = """
    apiVersion: v1
    kind: Secret
    metadata: {name: settings, namespace: NAMESPACE}
    stringData: {colour: blue}
    type: Opaque
    """
JOB = """
    apiVersion: batch/v1
    kind: Job
    metadata: {name: settings, namespace: NAMESPACE}
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: one, image: "one:1"}]}
    """


@pytest.mark.parametrize("more", ["", FIRST_MADE])
def test_another_name_kind_or_namespace_is_another_object(stage: Stage, more: str) -> None:
    text = declared("a", config_map("settings", colour="blue"), more)
    stage.applied(text)
    # In the namespace that everybody has, names are not for one test alone.
    other = f"other-{stage.namespace}"
    for kind, name, change in (
        ("configmaps", "settings", ("name: settings", f"name: {other}")),
        ("configmaps", other, ("kind: ConfigMap", "kind: Secret")),
        ("secrets", other, ("namespace: NAMESPACE", "namespace: default")),
    ):
        text = text.replace(*change).replace(" data:", " stringData:" if "Secret" in change[1] else " data:")
        assert stage.planned(text)[A].actions == (["create", "delete"] if more else ["delete", "create"])
        stage.applied()
        assert stage.get(kind, name) is None
    stage.destroyed()
    assert stage.access.call("GET", f"/api/v1/namespaces/default/secrets/{other}").status == 404


@pytest.mark.parametrize(
    ("kind", "document", "change", "field"),
    [
        ("secrets", SECRET, ("Opaque", "example.com/other"), "type"),
        ("configmaps", config_map("settings", colour="blue") + "immutable: true", ("blue", "red"), "data"),
        ("jobs", JOB, ("one:1", "one:2"), "spec.template"),
    ],
)
def test_a_field_that_cannot_change_takes_a_new_object(
    stage: Stage, kind: str, document: str, change: tuple[str, str], field: str
) -> None:
    text = declared("a", document)
    stage.applied(text)
    uid = stage.uid(kind, "settings")
    stage.write(text.replace(*change))
    outcome = stage.plan()

    assert outcome.actions == {A: "replace"}
    (told,) = outcome.diagnostics
    assert (told.severity, told.summary) == ("warning", "A new object is needed")
    assert field in told.detail
    assert stage.apply().code == 0
    stage.is_settled()
    assert stage.uid(kind, "settings") != uid


def test_a_protected_object_is_not_replaced_for_a_field_that_cannot_change(stage: Stage) -> None:
    text = declared("a", SECRET, "delete_protection = true")
    stage.applied(text)
    summary, _ = stage.refused(text.replace("Opaque", "example.com/other"))

    assert summary == "The object is protected"


def test_a_replacement_that_is_asked_for_is_a_new_object(stage: Stage) -> None:
    stage.applied(SETTINGS)
    first = stage.uid("configmaps", "settings")
    stage.applied(None, f"-replace={A}")
    second = stage.uid("configmaps", "settings")
    assert stage.project.run("taint", A).code == 0
    stage.applied()
    third = stage.uid("configmaps", "settings")

    assert len({first, second, third}) == 3


def test_a_replacement_of_the_same_name_cannot_be_made_first(stage: Stage) -> None:
    stage.applied(declared("a", config_map("settings", colour="blue"), FIRST_MADE))
    uid = stage.uid("configmaps", "settings")
    outcome = stage.apply(f"-replace={A}")

    assert (outcome.code, [one.summary for one in outcome.diagnostics]) == (
        1,
        ["The object is kept by another resource"],
    )
    assert stage.uid("configmaps", "settings") == uid
    stage.is_settled()


def test_an_object_goes_to_another_cluster_anew_and_by_another_way_to_its_own_in_place(
    stage: Stage, own_api_server: Cluster
) -> None:
    stage.applied(SETTINGS)
    uid, elsewhere = stage.uid("configmaps", "settings"), own_api_server.access
    stage.applied(declared("a", config_map("settings", colour="blue"), 'cluster = { config_path = "KUBECONFIG" }'))
    assert stage.uid("configmaps", "settings") == uid

    elsewhere.call("POST", "/api/v1/namespaces", {"metadata": {"name": stage.namespace}})
    text = declared(
        "a", config_map("settings", colour="blue"), f'cluster = {{ config_path = "{elsewhere.kubeconfig}" }}'
    )
    assert stage.planned(text)[A].actions == ["delete", "create"]
    stage.applied()
    assert stage.get("configmaps", "settings") is None
    assert elsewhere.call("GET", stage.path("configmaps", "settings")).status == 200
    stage.destroyed()
    assert elsewhere.call("GET", stage.path("configmaps", "settings")).status == 404
