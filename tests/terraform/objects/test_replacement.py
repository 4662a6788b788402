"""Changes that require a new object, and replacements that the user requests."""

from tests.cluster.access import Access
from tests.terraform.objects.workspace import A, Workspace, config_map, declared

SETTINGS = declared("a", config_map("settings", colour="blue"))
CREATE_FIRST = "lifecycle { create_before_destroy = true }"
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


# A change of each part of the identity.
CHANGES = {
    "name": ("name: ", "name: other-"),
    "kind": ("kind: ConfigMap", "kind: Secret"),
    "namespace": ("namespace: NAMESPACE", "namespace: default"),
}


def test_another_name_kind_or_namespace_is_another_object(workspace: Workspace) -> None:
    # The default namespace is shared by all tests: names there must be unique.
    names = {part: f"{part}-{workspace.namespace}" for part in CHANGES}
    for more in ("", CREATE_FIRST):
        before = {part: declared(part, config_map(name), more) for part, name in names.items()}
        workspace.applied("".join(before.values()))
        changes = workspace.planned("".join(text.replace(*CHANGES[part]) for part, text in before.items()))

        expected = ["create", "delete"] if more else ["delete", "create"]
        assert {address: one.actions for address, one in changes.items()} == {
            f"setpoint_object.{part}": expected for part in CHANGES
        }
        workspace.apply_planned()
        assert [workspace.get("configmaps", name) for name in names.values()] == [None, None, None]
    workspace.destroyed()
    path = f"/api/v1/namespaces/default/configmaps/{names['namespace']}"
    assert workspace.access.call("GET", path).status == 404


# By kind: a document, a change of an immutable field, and the field.
IMMUTABLE = {
    "secrets": (SECRET, ("Opaque", "example.com/other"), "type"),
    "configmaps": (config_map("settings", colour="blue") + "immutable: true", ("blue", "red"), "data"),
    "jobs": (JOB, ("one:1", "one:2"), "spec.template"),
}


def test_a_change_of_an_immutable_field_replaces_the_object(workspace: Workspace) -> None:
    workspace.applied("".join(declared(kind, document) for kind, (document, _, _) in IMMUTABLE.items()))
    before = {kind: workspace.uid(kind, "settings") for kind in IMMUTABLE}
    workspace.write("".join(declared(kind, one.replace(*change)) for kind, (one, change, _) in IMMUTABLE.items()))
    outcome = workspace.plan("-out=plan")
    shown = {one.address: one for one in outcome.diagnostics}

    assert outcome.actions == {f"setpoint_object.{kind}": "replace" for kind in IMMUTABLE}
    assert len(outcome.diagnostics) == len(IMMUTABLE)
    for kind, (_, _, field) in IMMUTABLE.items():
        warning = shown[f"setpoint_object.{kind}"]
        assert (warning.severity, warning.summary) == ("warning", "A new object is needed")
        assert field in warning.detail
    workspace.apply_planned()
    assert [kind for kind in IMMUTABLE if workspace.uid(kind, "settings") == before[kind]] == []


def test_a_protected_object_is_not_replaced_for_an_immutable_field(workspace: Workspace) -> None:
    text = declared("a", SECRET, "delete_protection = true")
    workspace.applied(text)
    summary, _ = workspace.refused(text.replace("Opaque", "example.com/other"))

    assert summary == "The object is protected"


def test_a_requested_replacement_creates_a_new_object(workspace: Workspace) -> None:
    workspace.applied(SETTINGS)
    first = workspace.uid("configmaps", "settings")
    workspace.applied(None, f"-replace={A}")
    second = workspace.uid("configmaps", "settings")
    assert workspace.project.run("taint", A).code == 0
    workspace.applied()
    third = workspace.uid("configmaps", "settings")

    assert len({first, second, third}) == 3


def test_a_replacement_of_the_same_name_cannot_be_created_before_the_destroy(workspace: Workspace) -> None:
    workspace.applied(declared("a", config_map("settings", colour="blue"), CREATE_FIRST))
    uid = workspace.uid("configmaps", "settings")
    outcome = workspace.apply(f"-replace={A}")

    assert (outcome.code, [one.summary for one in outcome.diagnostics]) == (
        1,
        ["The object is kept by another resource"],
    )
    assert workspace.uid("configmaps", "settings") == uid
    workspace.assert_no_changes()


def test_another_cluster_replaces_the_object_and_another_connection_to_the_same_one_does_not(
    workspace: Workspace, other_api_server: Access
) -> None:
    workspace.applied(SETTINGS)
    uid, other_cluster = workspace.uid("configmaps", "settings"), other_api_server
    workspace.applied(declared("a", config_map("settings", colour="blue"), 'cluster = { config_path = "KUBECONFIG" }'))
    assert workspace.uid("configmaps", "settings") == uid

    other_cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": workspace.namespace}})
    text = declared(
        "a", config_map("settings", colour="blue"), f'cluster = {{ config_path = "{other_cluster.kubeconfig}" }}'
    )
    assert workspace.planned(text)[A].actions == ["delete", "create"]
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings") is None
    assert other_cluster.call("GET", workspace.path("configmaps", "settings")).status == 200
    workspace.destroyed()
    assert other_cluster.call("GET", workspace.path("configmaps", "settings")).status == 404
