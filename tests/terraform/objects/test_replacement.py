"""Changes that take a new object, and wishes for one."""

import pytest

from tests.cluster.access import Access
from tests.terraform.objects.workspace import A, Workspace, config_map, declared

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
def test_another_name_kind_or_namespace_is_another_object(workspace: Workspace, more: str) -> None:
    text = declared("a", config_map("settings", colour="blue"), more)
    workspace.applied(text)
    # The default namespace is shared by all tests: names there must be unique.
    other = f"other-{workspace.namespace}"
    for kind, name, change in (
        ("configmaps", "settings", ("name: settings", f"name: {other}")),
        ("configmaps", other, ("kind: ConfigMap", "kind: Secret")),
        ("secrets", other, ("namespace: NAMESPACE", "namespace: default")),
    ):
        text = text.replace(*change).replace(" data:", " stringData:" if "Secret" in change[1] else " data:")
        assert workspace.planned(text)[A].actions == (["create", "delete"] if more else ["delete", "create"])
        workspace.applied()
        assert workspace.get(kind, name) is None
    workspace.destroyed()
    assert workspace.access.call("GET", f"/api/v1/namespaces/default/secrets/{other}").status == 404


@pytest.mark.parametrize(
    ("kind", "document", "change", "field"),
    [
        ("secrets", SECRET, ("Opaque", "example.com/other"), "type"),
        ("configmaps", config_map("settings", colour="blue") + "immutable: true", ("blue", "red"), "data"),
        ("jobs", JOB, ("one:1", "one:2"), "spec.template"),
    ],
)
def test_a_change_of_an_immutable_field_replaces_the_object(
    workspace: Workspace, kind: str, document: str, change: tuple[str, str], field: str
) -> None:
    text = declared("a", document)
    workspace.applied(text)
    uid = workspace.uid(kind, "settings")
    workspace.write(text.replace(*change))
    outcome = workspace.plan()

    assert outcome.actions == {A: "replace"}
    (told,) = outcome.diagnostics
    assert (told.severity, told.summary) == ("warning", "A new object is needed")
    assert field in told.detail
    assert workspace.apply().code == 0
    workspace.is_settled()
    assert workspace.uid(kind, "settings") != uid


def test_a_protected_object_is_not_replaced_for_an_immutable_field(workspace: Workspace) -> None:
    text = declared("a", SECRET, "delete_protection = true")
    workspace.applied(text)
    summary, _ = workspace.refused(text.replace("Opaque", "example.com/other"))

    assert summary == "The object is protected"


def test_a_replacement_that_is_asked_for_is_a_new_object(workspace: Workspace) -> None:
    workspace.applied(SETTINGS)
    first = workspace.uid("configmaps", "settings")
    workspace.applied(None, f"-replace={A}")
    second = workspace.uid("configmaps", "settings")
    assert workspace.project.run("taint", A).code == 0
    workspace.applied()
    third = workspace.uid("configmaps", "settings")

    assert len({first, second, third}) == 3


def test_a_replacement_of_the_same_name_cannot_be_created_before_the_destroy(workspace: Workspace) -> None:
    workspace.applied(declared("a", config_map("settings", colour="blue"), FIRST_MADE))
    uid = workspace.uid("configmaps", "settings")
    outcome = workspace.apply(f"-replace={A}")

    assert (outcome.code, [one.summary for one in outcome.diagnostics]) == (
        1,
        ["The object is kept by another resource"],
    )
    assert workspace.uid("configmaps", "settings") == uid
    workspace.is_settled()


def test_another_cluster_replaces_the_object_and_another_connection_to_the_same_one_does_not(
    workspace: Workspace, other_api_server: Access
) -> None:
    workspace.applied(SETTINGS)
    uid, elsewhere = workspace.uid("configmaps", "settings"), other_api_server
    workspace.applied(declared("a", config_map("settings", colour="blue"), 'cluster = { config_path = "KUBECONFIG" }'))
    assert workspace.uid("configmaps", "settings") == uid

    elsewhere.call("POST", "/api/v1/namespaces", {"metadata": {"name": workspace.namespace}})
    text = declared(
        "a", config_map("settings", colour="blue"), f'cluster = {{ config_path = "{elsewhere.kubeconfig}" }}'
    )
    assert workspace.planned(text)[A].actions == ["delete", "create"]
    workspace.applied()
    assert workspace.get("configmaps", "settings") is None
    assert elsewhere.call("GET", workspace.path("configmaps", "settings")).status == 200
    workspace.destroyed()
    assert elsewhere.call("GET", workspace.path("configmaps", "settings")).status == 404
