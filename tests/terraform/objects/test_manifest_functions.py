"""`provider::setpoint::manifests` and its kin, in expressions of the real Terraform."""

import os
from pathlib import Path

from tests.terraform.objects.test_data_sources import outputs
from tests.terraform.objects.workspace import Workspace

SPLIT = """
locals {
  found = provider::setpoint::manifests_in("${path.module}/manifests")
}
resource "setpoint_object" "crds" {
  for_each  = local.found.crds
  yaml_body = each.value
}
resource "setpoint_object" "namespaces" {
  for_each  = local.found.namespaces
  yaml_body = each.value
}
resource "setpoint_object" "cluster_scoped" {
  for_each   = local.found.cluster_scoped
  yaml_body  = each.value
  depends_on = [setpoint_object.crds]
}
resource "setpoint_object" "namespaced" {
  for_each   = local.found.namespaced
  yaml_body  = each.value
  depends_on = [setpoint_object.namespaces, setpoint_object.cluster_scoped]
}
"""
FIRST = """
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE-a}
---
# A comment, and an empty document.
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAMESPACE-reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: NAMESPACE-a}, data: {enabled: "yes"}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: NAMESPACE}}
"""
SECOND = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: flags.NAMESPACE.test}
spec:
  group: NAMESPACE.test
  scope: Cluster
  names: {kind: Flag, plural: flags, singular: flag}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: NAMESPACE.test/v1
kind: Flag
metadata: {name: up}
"""
EXPRESSIONS = """
locals {
  text = <<-EOT
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: a}
    data: {host: "$${host}"}
  EOT
  one = provider::setpoint::manifest_decode("{apiVersion: v1, kind: Pod, metadata: {name: a}, on: [010, 1.5, yes]}")
}
output "decoded" { value = local.one }
output "encoded" {
  value = provider::setpoint::manifest_encode({ kind = "A", metadata = { name = "yes", labels = null } })
}
output "several" { value = provider::setpoint::manifest_encode([{ kind = "A" }, { kind = "B" }]) }
output "empty" { value = provider::setpoint::manifests("", "---").all }
output "secret" { value = issensitive(provider::setpoint::manifests(sensitive(local.text)).all) }
output "filled" {
  value = { for key, one in provider::setpoint::manifests(local.text).all : key => replace(one, "$${host}", "b") }
}
output "late" { value = provider::setpoint::manifests(replace(local.text, "$${host}", terraform_data.late.id)).all }
resource "terraform_data" "late" {}
"""


def write_files(workspace: Workspace, texts: dict[str, str]) -> Path:
    folder = workspace.folder / "manifests"
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("NAMESPACE", workspace.namespace))
    return folder


def test_a_folder_becomes_resources_stage_by_stage(workspace: Workspace) -> None:
    space = workspace.namespace
    files = {"b.yaml": FIRST, "a/crd.yml": SECOND, ".git/x.yaml": "not: [yaml", "README.md": "no manifest"}
    write_files(workspace, files)
    workspace.applied(SPLIT)

    assert sorted(workspace.project.instances()) == [
        f"setpoint_object.cluster_scoped[ClusterRole/{space}-reader]",
        "setpoint_object.cluster_scoped[Flag/up]",
        f"setpoint_object.crds[CustomResourceDefinition/flags.{space}.test]",
        f"setpoint_object.namespaced[ConfigMap/{space}-a/one]",
        f"setpoint_object.namespaced[ConfigMap/{space}/two]",
        f"setpoint_object.namespaces[Namespace/{space}-a]",
    ]
    assert workspace.access.call("GET", f"/apis/{space}.test/v1/flags/up").status == 200
    workspace.destroyed()
    assert workspace.access.call("GET", f"/apis/{space}.test/v1/flags/up").status == 404


def test_functions_read_and_write_yaml_as_kubernetes_does(workspace: Workspace) -> None:
    workspace.write(EXPRESSIONS)
    found = outputs(workspace)

    assert found["decoded"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "on": [8, 1.5, True]}
    assert found["encoded"] == "kind: A\nmetadata:\n  name: 'yes'\n"
    assert (found["several"], found["empty"]) == ("kind: A\n---\nkind: B\n", {})
    assert found["secret"] is True
    assert found["filled"] == {
        "ConfigMap/a": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  host: b\n"
    }
    assert list(found["late"]) == ["ConfigMap/a"]


def test_mistakes_are_told_with_the_file_and_the_line(workspace: Workspace) -> None:
    folder = write_files(workspace, {"a.yaml": FIRST, "b/more.yaml": "---\n" + FIRST.split("---")[0], "c/x.txt": ""})
    (workspace.folder / "pipes").mkdir()
    os.mkfifo(workspace.folder / "pipes/a.yaml")
    space = workspace.namespace
    bad = "apiVersion: v1\\nkind: Pod\\nmetadata: {}"
    calls = {
        f'manifests_in("{workspace.folder}/pipes")': f"{workspace.folder}/pipes/a.yaml: this is no file: remove it",
        f'manifests_in("{folder}")': f"{folder}/b/more.yaml:3: Namespace/{space}-a is at {folder}/a.yaml:2 already: "
        "remove one of them",
        f'manifests_in("{folder}/*.yaml", "{folder}/**/none*.yaml")': f"{folder}/**/none*.yaml: no manifest is there: "
        "name a file, a pattern or a folder of .yaml files",
        f'manifests_in("{folder}/c")': "no manifest is there",
        f'manifests_in("{folder}/none.yaml")': "No such file or directory",
        f'manifests("{bad}")': "text:1: an object needs apiVersion, kind and metadata.name: write all three",
        'manifests("", "a: [")': "text 2:2: this is not YAML",
        'manifests("\\n{{ .Values.a }}")': "text:2: this is a template",
        f'manifest_decode("{bad}\\n---\\n{bad}")': "The text has 2 documents: give one, or split it by manifests()",
        'manifest_encode("text")': "A manifest is an object with apiVersion, kind and metadata: give one",
    }
    workspace.write(
        "".join(f'output "a{at}" {{ value = provider::setpoint::{one} }}\n' for at, one in enumerate(calls))
    )
    shown = [" ".join(one.detail.split()) for one in workspace.plan().diagnostics]
    assert len(shown) == len(calls)
    assert [one for one, why in calls.items() if not any(why in text for text in shown)] == []
