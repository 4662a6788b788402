"""The data sources read any object and list objects by selector; values of Secrets on request only."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from tests.terraform.objects.workspace import Workspace

SOURCES = """
data "setpoint_object" "open" {
  api_version  = "v1"
  kind         = "Secret"
  name         = "login"
  namespace    = "NAMESPACE"
  read_secrets = true
}
data "setpoint_object" "closed" {
  api_version = "v1"
  kind        = "Secret"
  name        = "login"
  namespace   = "NAMESPACE"
}
data "setpoint_object" "none" {
  api_version  = "v1"
  kind         = "Secret"
  name         = "none"
  namespace    = "NAMESPACE"
  optional     = true
  read_secrets = true
}
data "setpoint_objects" "web" {
  api_version    = "v1"
  kind           = "ConfigMap"
  namespace      = "NAMESPACE"
  label_selector = "app in (web, shop),tier!=b"
}
data "setpoint_objects" "one" {
  api_version    = "v1"
  kind           = "ConfigMap"
  all_namespaces = true
  field_selector = "metadata.namespace=NAMESPACE,metadata.name=a1"
}
data "setpoint_objects" "clusterwide" {
  api_version    = "v1"
  kind           = "Namespace"
  field_selector = "metadata.name=NAMESPACE"
}
data "setpoint_objects" "secrets" {
  api_version = "v1"
  kind        = "Secret"
  namespace   = "NAMESPACE"
}
data "setpoint_objects" "empty" {
  api_version    = "apps/v1"
  kind           = "Deployment"
  namespace      = "NAMESPACE"
  label_selector = "app=web"
}
output "text" { value = nonsensitive(data.setpoint_object.open.secret_data) }
output "bytes" { value = nonsensitive(data.setpoint_object.open.secret_data_base64) }
output "hidden" { value = [data.setpoint_object.open.object, data.setpoint_object.open.yaml_body] }
output "closed" { value = nonsensitive(data.setpoint_object.closed.secret_data == null) }
output "none" { value = nonsensitive(data.setpoint_object.none.secret_data == null) }
output "web" { value = keys(data.setpoint_objects.web.objects) }
output "kinds" { value = [for one in values(data.setpoint_objects.web.objects) : "${one.apiVersion} ${one.kind}"] }
output "one" { value = data.setpoint_objects.one.objects["NAMESPACE/a1"].data }
output "clusterwide" { value = keys(data.setpoint_objects.clusterwide.objects) }
output "secrets" { value = data.setpoint_objects.secrets.objects }
output "empty" { value = data.setpoint_objects.empty.objects }
"""
LIST = """
data "setpoint_objects" "a" {
  api_version = "v1"
  kind        = "ConfigMap"
  MORE
}
"""


def outputs(workspace: Workspace) -> dict[str, Any]:
    applied = workspace.apply()
    assert applied.code == 0, applied.diagnostics
    found: Mapping[str, Any] = [one["outputs"] for one in applied.events if one["type"] == "outputs"][-1]
    return {name: one["value"] for name, one in found.items()}


def config_maps(workspace: Workspace, labels: Mapping[str, Mapping[str, str]]) -> None:
    for name, one in labels.items():
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": one}, "data": {"n": name}}
        workspace.make("configmaps", tree)


def test_objects_are_read_and_listed_and_values_of_secrets_come_on_request_only(workspace: Workspace) -> None:
    values = {"password": base64.b64encode(b"hunter2").decode(), "key": base64.b64encode(b"\xff\x00").decode()}
    workspace.make("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": values})
    config_maps(
        workspace, {"a1": {"app": "web"}, "a2": {"app": "shop"}, "a3": {"app": "web", "tier": "b"}, "a4": {"app": "x"}}
    )
    workspace.write(SOURCES)
    found = outputs(workspace)

    assert (found["text"], found["bytes"]) == ({"password": "hunter2"}, values)
    assert (found["closed"], found["none"]) == (True, True)
    assert values["password"] not in json.dumps([found["hidden"], found["secrets"]])
    assert list(found["secrets"]) == [f"{workspace.namespace}/login"]
    assert found["web"] == [f"{workspace.namespace}/a1", f"{workspace.namespace}/a2"]
    assert (found["kinds"], found["one"]) == (["v1 ConfigMap"] * 2, {"n": "a1"})
    assert (found["clusterwide"], found["empty"]) == ([workspace.namespace], {})
    # Terraform hides it: the attribute is sensitive.
    workspace.write(
        SOURCES.replace("nonsensitive(data.setpoint_object.open.secret_data)", "data.setpoint_object.open.secret_data")
    )
    assert "Output refers to sensitive values" in [one.summary for one in workspace.plan().diagnostics]


def test_a_list_is_whole_over_pages_or_an_error_that_says_what_to_do(workspace: Workspace) -> None:
    config_maps(workspace, {f"a{number}": {"app": "web"} for number in range(7)})
    where = 'namespace = "NAMESPACE"\n  label_selector = "app=web"'
    whole = (
        LIST.replace("MORE", f"{where}\n  limit = 7") + 'output "a" { value = length(data.setpoint_objects.a.objects) }'
    )
    workspace.write(whole)
    assert outputs(workspace)["a"] == 7

    assert workspace.refused(whole.replace("limit = 7", "limit = 6")) == (
        "Too many objects",
        "There are more than 6: select fewer by labels, fields or namespace, or raise limit.",
    )
    refusals = {
        'namespace = "a"\n  all_namespaces = true': "Not one place",
        "limit = 10001": "No such limit",
        "limit = 0": "No such limit",
        'label_selector = "a in b"': "Remote refused",
    }
    assert {more: workspace.refused(LIST.replace("MORE", more))[0] for more in refusals} == refusals
    summary, detail = workspace.refused(LIST.replace("MORE", "").replace("ConfigMap", "ConfigMop"))
    assert (summary, "the cluster serves no ConfigMop in v1" in detail) == ("Kind not served", True)
    secrets = SOURCES.split("data")[1].replace('"Secret"', '"ConfigMap"')
    assert workspace.refused(f"data{secrets}") == (
        "No values of a Secret",
        "ConfigMap in v1 is no Secret: leave read_secrets out.",
    )
