"""Which fields are compared: ignored ones, secrets, and values that are unknown until apply."""

import pytest

from tests.terraform.objects.workspace import A, Workspace, config_map, declared, valued

IGNORING = declared("a", config_map("settings", colour="blue", size="1"), 'ignore_fields = ["data.size"]')
NOT_IGNORING = declared("a", config_map("settings", colour="blue", size="1"))
SECRET = """
    apiVersion: v1
    kind: Secret
    metadata: {name: login, namespace: NAMESPACE}
    stringData: {password: 0ther}
    """
UNKNOWN_UNTIL_APPLY = """
resource "terraform_data" "x" {
  input = INPUT
}
"""


def test_an_ignored_field_is_set_at_creation_and_left_to_other_managers_until_it_is_no_longer_ignored(
    workspace: Workspace,
) -> None:
    workspace.applied(IGNORING)
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue", "size": "1"}
    assert workspace.state()["projection"] == {"data.colour": "blue"}
    workspace.edit("configmaps", "settings", {"data": {"size": "7"}})
    workspace.assert_no_changes()
    workspace.applied(IGNORING.replace("blue", "red").replace('"size": "1"', '"size": "3"'))
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "red", "size": "7"}

    workspace.write(NOT_IGNORING)
    assert workspace.planned()[A].after["projection"] == {"data.colour": "blue", "data.size": "1"}
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue", "size": "1"}


def _settings(more: str) -> str:
    return declared("LABEL", config_map("settings"), more)


def annotated(key: str) -> str:
    return declared(
        "LABEL",
        f"""
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: settings
          namespace: NAMESPACE
          annotations:
            {key}: "true"
        """,
    )


DEPLOYMENT = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: NAMESPACE}
    spec:
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1"}]}
    """


# Mistakes and the words that their errors have: those that need no cluster, and those that the plan finds.
INVALID = {
    "at validation": {
        "no_kind": (declared("LABEL", config_map("settings").replace("kind: ConfigMap", "")), ("kind",)),
        "generated_name": (
            declared("LABEL", config_map("settings").replace("name: settings", "generateName: settings-")),
            ("yaml_body:3:", "metadata.generateName", "write metadata.name", "sha256(var.image)"),
        ),
        "generated_value": (
            valued(
                "LABEL", '{ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "x", generateName = "x-" } }'
            ),
            ("manifest: metadata.generateName", "Leave it out"),
        ),
        "two_waits": (_settings('wait_for = { condition = "A", field = "b" }'), ("condition", "field")),
        "no_time": (_settings('wait_for = { field = "b", timeout = "0s" }'), ("timeout",)),
        "on_timeout": (_settings('on_timeout = "retry"'), ("on_timeout", "keep")),
        "delete_timeout": (_settings('delete_timeout = "soon"'), ("delete_timeout", "soon")),
        "two_manifests": (_settings('manifest = { kind = "A" }'), ("yaml_body", "manifest")),
        "two_documents": (declared("LABEL", "a: 1\n---\nb: 2"), ("2 documents",)),
        "no_yaml": (declared("LABEL", "a: [1"), ("yaml_body",)),
        "id": (annotated("setpoint.dev/terraform-id"), ("yaml_body:7:", "setpoint.dev/terraform-id", "leave it out")),
        "protection": (annotated("setpoint.dev/delete-protection"), ("yaml_body:7:", "delete_protection = true")),
        "no_such_annotation": (annotated("setpoint.dev/managment"), ("yaml_body:7:", "setpoint.dev/managment")),
    },
    "at plan": {
        "typo": (declared("LABEL", config_map("settings").replace(" data:", " dtaa:")), ("dtaa",)),
        "name": (declared("LABEL", config_map("Settings_1")), ("Settings_1", "RFC 1123")),
        "api_version": (declared("LABEL", config_map("settings").replace(": v1", ": V1")), ("apiVersion", "'V1'")),
        "ignore_fields": (_settings('ignore_fields = ["data[["]'), ("ignore_fields", "data[[")),
        "no_such_field": (
            _settings('ignore_fields = ["data.a", "dta.a"]'),
            ("ignore_fields[1]", "dta.a", "mean data.a?"),
        ),
        "elsewhere": (
            declared("LABEL", DEPLOYMENT, 'ignore_fields = ["spec.template.spec.containers[0].replicas"]'),
            ("ignore_fields[0]", "Deployment of apps/v1 has no such field", "spec.replicas"),
        ),
        "rollout": (_settings("wait_for = { rollout = true }"), ("rollout", "ConfigMap")),
    },
}


@pytest.mark.parametrize("when", INVALID)
def test_every_mistake_of_a_configuration_is_reported(workspace: Workspace, when: str) -> None:
    cases = INVALID[when]
    workspace.write("".join(text.replace("LABEL", label) for label, (text, _) in cases.items()))
    outcome = workspace.plan()
    details = {one.address: one.detail for one in outcome.diagnostics if one.severity == "error"}

    assert (outcome.code, len(outcome.diagnostics)) == (1, len(cases)), outcome.diagnostics
    for label, (text, words) in cases.items():
        detail = details[f"setpoint_object.{label}"]
        assert [word for word in words if word not in detail] == [], detail
        assert "spec." not in detail or 'ignore_fields = ["spec.' in text
        assert "KubernetesObject" not in detail
    lines = {one.address: one.line for one in outcome.diagnostics}
    for label in {"no_such_field", "elsewhere", "ignore_fields"} & cases.keys():
        assert "ignore_fields" in lines[f"setpoint_object.{label}"]


def test_a_typo_in_an_update_is_reported_at_plan(workspace: Workspace) -> None:
    workspace.applied(NOT_IGNORING)
    _, detail = workspace.refused(NOT_IGNORING.replace(" data:", " binaryDate:"))

    assert "binaryDate" in detail


def test_the_values_of_a_secret_are_redacted(workspace: Workspace) -> None:
    workspace.applied(valued("a", SECRET_VALUE))
    assert workspace.get("secrets", "login")["data"] == {"password": "czNjcmV0"}
    text = declared("a", SECRET).replace("<<-EOT", "sensitive(<<-EOT").replace("EOT\n", "EOT\n)\n")
    change = workspace.planned(text.replace("sensitive(<<-EOT\n)", "sensitive(<<-EOT"))[A]
    shown, _ = workspace.project.start("show", "-no-color", "plan").communicate()

    assert "data.password" in shown
    assert [word for word in ("s3cret", "czNjcmV0", "0ther", "MHRoZXI") if word in shown] == []
    before, after = (one["projection"]["data.password"] for one in (change.before, change.after))
    assert before.startswith("(hidden, sha256 ")
    assert before != after
    workspace.apply_planned()
    workspace.edit("secrets", "login", {"data": {"password": "eHh4"}})
    assert workspace.planned()[A].after["projection"] == {"data.password": after}
    workspace.apply_planned()
    assert workspace.get("secrets", "login")["data"] == {"password": "MHRoZXI="}
    workspace.destroyed()


SECRET_VALUE = """{
    apiVersion = "v1"
    kind       = "Secret"
    metadata   = { name = "login", namespace = "NAMESPACE" }
    stringData = sensitive({ password = "s3cret" })
  }"""


def test_a_manifest_with_unknown_values_is_applied_in_one_run(workspace: Workspace) -> None:
    body = valued("a", MANIFEST.replace("COLOUR", "terraform_data.x.output"))
    change = workspace.planned(UNKNOWN_UNTIL_APPLY.replace("INPUT", '"blue"') + body)[A]

    assert change.unknown["projection"] is True
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue"}
    change = workspace.planned(UNKNOWN_UNTIL_APPLY.replace("INPUT", '"red"') + body)[A]
    assert (change.actions, change.unknown["projection"]) == (["update"], True)
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "red"}


MANIFEST = """{
    apiVersion = "v1"
    kind       = "ConfigMap"
    metadata   = { name = "settings", namespace = "NAMESPACE" }
    data       = { colour = COLOUR }
  }"""


def test_an_unknown_yaml_body_and_an_unknown_cluster_are_applied_in_one_run(workspace: Workspace) -> None:
    later = UNKNOWN_UNTIL_APPLY.replace(
        "INPUT", '{ path = "KUBECONFIG", body = "{apiVersion: v1, kind: ConfigMap, metadata: BODY}" }'
    )
    text = """
resource "setpoint_object" "a" {
  yaml_body = terraform_data.x.output.body
  cluster   = { config_path = terraform_data.x.output.path }
}
resource "setpoint_object" "b" {
  yaml_body = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: NAMESPACE}}"
  cluster   = { config_path = terraform_data.x.output.path }
}
"""
    workspace.applied(later.replace("BODY", "{name: settings, namespace: NAMESPACE}") + text)

    assert workspace.get("configmaps", "settings") is not None
    assert workspace.get("configmaps", "other") is not None
    workspace.destroyed()


def test_an_unknown_name_that_turns_out_to_be_another_replaces_the_object(workspace: Workspace) -> None:
    body = valued("a", MANIFEST.replace('"settings"', "terraform_data.x.output").replace("COLOUR", '"blue"'))
    workspace.applied(UNKNOWN_UNTIL_APPLY.replace("INPUT", '"one"') + body)
    workspace.write(UNKNOWN_UNTIL_APPLY.replace("INPUT", '"two"') + body)
    outcome = workspace.apply()

    assert outcome.code == 0, outcome.diagnostics
    workspace.assert_no_changes()
    assert workspace.get("configmaps", "one") is None
    assert workspace.get("configmaps", "two") is not None
