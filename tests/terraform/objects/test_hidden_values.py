"""Values that may be secret: no output, error, log, computed attribute or private state has them."""

import base64
import json
from pathlib import Path
from typing import Final

from tests.cluster.polling import until
from tests.terraform.objects.secret_marks import MARKS, VARIABLE, Outputs, marks_in
from tests.terraform.objects.workspace import Workspace

# In every sort of place in which free text stands.
_OBJECTS: Final = """
resource "setpoint_object" "a" {
  yaml_body = <<-EOT
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: settings
      namespace: NAMESPACE
      labels: {colour: blue}
      annotations: {example.com/note: "${var.marks[0]}"}
    data:
      url: "postgres://user:${var.marks[1]}@db/shop"
      key: "${var.marks[0]}"
      colour: COLOUR
  EOT
}
resource "setpoint_object" "b" {
  manifest = {
    apiVersion = "apps/v1"
    kind       = "Deployment"
    metadata   = { name = "web", namespace = "NAMESPACE" }
    spec = {
      replicas = 1
      selector = { matchLabels = { app = "web" } }
      template = {
        metadata = { labels = { app = "web" } }
        spec = { containers = [{
          name  = "web"
          image = "web:1"
          args  = ["--password=${var.marks[2]}"]
          env   = [{ name = "PASSWORD", value = var.marks[3] }]
        }] }
      }
    }
  }
}
resource "setpoint_object" "c" {
  yaml_body = <<-EOT
    {apiVersion: v1, kind: Secret, metadata: {name: login, namespace: NAMESPACE}, stringData: {p: ${var.marks[4]}}}
  EOT
}
"""


def _private_states(folder: Path) -> str:
    state = json.loads((folder / "terraform.tfstate").read_text())
    instances = [one for resource in state["resources"] for one in resource["instances"]]
    return "".join(base64.b64decode(one.get("private") or "").decode() for one in instances)


def test_plan_apply_refresh_show_import_and_destroy_show_which_fields_change_and_no_value(workspace: Workspace) -> None:
    workspace.write(VARIABLE + _OBJECTS.replace("COLOUR", "blue"))
    outputs = Outputs(workspace)
    outputs.run("apply", "-auto-approve")
    workspace.edit("configmaps", "settings", {"data": {"url": f"postgres://user:{MARKS[5]}@db/shop"}})
    env = [{"name": "PASSWORD", "value": MARKS[6]}]
    containers = {"template": {"spec": {"containers": [{"name": "web", "image": "web:2", "env": env}]}}}
    workspace.edit("deployments", "web", {"spec": {**containers, "replicas": 3}})
    outputs.run("plan", "-refresh-only")
    workspace.write(VARIABLE + _OBJECTS.replace("COLOUR", MARKS[7]))
    changed = " ".join(outputs.run("apply", "-auto-approve").split())
    private = _private_states(workspace.folder)
    workspace.assert_no_changes()
    outputs.run("state", "rm", "setpoint_object.a", "setpoint_object.c")
    for label, kind, name in (("a", "ConfigMap", "settings"), ("c", "Secret", "login")):
        id_ = f"apiVersion=v1,kind={kind},namespace={workspace.namespace},name={name}"
        assert "Import successful" in outputs.run("import", f"setpoint_object.{label}", id_)
    assert "0 added, 2 changed" in outputs.run("apply", "-auto-approve")
    outputs.run("show")
    assert "3 destroyed" in outputs.run("destroy", "-auto-approve")

    assert (outputs.marks, marks_in(private)) == ([], [])
    assert '~ "spec.replicas" = "3" -> "1"' in changed
    assert '"spec.template.spec.containers[name=web].image" = "web:2" -> "web:1"' in changed
    assert '~ "data.url" = "(hidden, version 2)" -> "(hidden, version 3)"' in changed
    assert '~ "data.colour" = "(hidden, version 1)" -> "(hidden, version 2)"' in changed
    assert "Resources: 0 added, 2 changed, 0 destroyed" in changed


_DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
}
_SECRET_RULE: Final = {"rule": "size(self.word) > 100", "messageExpression": "'weak: ' + self.word"}


def _define(workspace: Workspace, group: str) -> None:
    """A kind whose rule repeats a value in its message, as a webhook may, too."""
    spec = {"type": "object", "properties": {"word": {"type": "string"}}, "x-kubernetes-validations": [_SECRET_RULE]}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    definition = {
        **_DEFINITION,
        "metadata": {"name": f"logins.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Login", "plural": "logins", "singular": "login"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert workspace.access.call("POST", path, definition).status == 201
    until(lambda: workspace.access.call("GET", f"/apis/{group}/v1/namespaces/default/logins").status == 200)


def _invalid(label: str, kind: str, rest: str) -> str:
    head = f"{kind}, metadata: {{name: {label.replace('_', '-')}, namespace: NAMESPACE}}"
    return f'resource "setpoint_object" "{label}" {{\n  yaml_body = <<-EOT\n    {{{head}, {rest}}}\n  EOT\n}}\n'


def test_errors_of_the_api_server_and_of_ours_have_paths_and_rules_and_no_value(workspace: Workspace) -> None:
    group = f"{workspace.namespace}.example.com"
    _define(workspace, group)
    long = '${join(",", [for number in range(400) : var.marks[3]])}'
    cases = {
        "wrong_type": ("apiVersion: v1, kind: ConfigMap", 'data: {a: {b: "${var.marks[0]}"}}', "data.a"),
        "ranges": (
            "apiVersion: v1, kind: Service",
            'spec: {ports: [{port: 80}], loadBalancerSourceRanges: ["${var.marks[1]}"]}',
            "spec.LoadBalancerSourceRanges",
        ),
        "rule": (f"apiVersion: {group}/v1, kind: Login", 'spec: {word: "${var.marks[2]}"}', "weak"),
        "cut": (
            "apiVersion: networking.k8s.io/v1, kind: Ingress",
            f'spec: {{rules: [{{http: {{paths: [{{path: "{long}", pathType: Exact}}]}}}}]}}',
            "path",
        ),
    }
    texts = [_invalid(label, kind, rest) for label, (kind, rest, _) in cases.items()]
    workspace.write(VARIABLE + "".join(texts))
    outputs = Outputs(workspace)
    printed = outputs.run("apply", "-auto-approve")
    workspace.write(VARIABLE + _invalid("tagged", "apiVersion: v1, kind: ConfigMap", "data: {a: !${var.marks[4]} 1}"))
    tagged = outputs.run("plan")

    assert outputs.marks == []
    assert "hunter2" not in printed + tagged
    assert [words for *_, words in cases.values() if words.lower() not in printed.lower()] == []
    assert printed.count("Error: ") == len(cases)
    assert "yaml_body:1: the tag '(redacted)' is not supported" in " ".join(tagged.replace("│", "").split())
