"""The data sources read any object and list objects by selector; values of Secrets on request only."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.core.unstructured import text_at
from setpoint.objects.listing import ObjectQuery, list_objects
from setpoint.objects.session import ClusterSession
from tests.cluster.access import Access
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


def refusals(workspace: Workspace, blocks: list[str]) -> set[tuple[str, str]]:
    """The summary and the end of the detail of each error of a plan with these data sources."""
    named = [one.replace('"a" {', f'"a{at}" {{') for at, one in enumerate(blocks)]
    workspace.write("".join(named))
    return {(one.summary, one.detail[-40:]) for one in workspace.plan().diagnostics}


def test_a_list_is_whole_or_an_error_that_says_what_to_do(workspace: Workspace) -> None:
    config_maps(workspace, {f"a{number}": {"app": "web"} for number in range(7)})
    where = 'namespace = "NAMESPACE"\n  label_selector = "app=web"'
    output = 'output "a" { value = length(data.setpoint_objects.a.objects) }'
    workspace.write(LIST.replace("MORE", f"{where}\n  limit = 7") + output)
    assert outputs(workspace)["a"] == 7

    assert refusals(
        workspace,
        [
            LIST.replace("MORE", f"{where}\n  limit = 6"),
            LIST.replace("MORE", 'label_selector = "a in b"'),
            LIST.replace("MORE", "").replace("ConfigMap", "ConfigMop"),
        ],
    ) == {
        ("Too many objects", "ls, fields or namespace, or raise limit."),
        ("Remote refused", "rse requirement: found 'b' expected: '('"),
        ("Kind not served", "ly its CRD, or check apiVersion and kind"),
    }
    secrets = f"data{SOURCES.split('data')[1]}".replace('"Secret"', '"ConfigMap"').replace('"open"', '"a"')
    assert refusals(
        workspace,
        [
            LIST.replace("MORE", 'namespace = "a"\n  all_namespaces = true'),
            LIST.replace("MORE", "limit = 10001"),
            LIST.replace("MORE", "limit = 0"),
            secrets,
        ],
    ) == {
        ("Not one place", "paces all of them: write one of the two."),
        ("No such limit", "limit is a whole number from 1 to 10000."),
        ("No values of a Secret", "v1 is no Secret: leave read_secrets out."),
    }


def test_a_list_is_the_same_whatever_its_pages_are(api_server: Access, namespace: str) -> None:
    for number in range(7):
        tree = {"metadata": {"name": f"a{number}", "labels": {"app": "web"}}}
        assert api_server.call("POST", f"/api/v1/namespaces/{namespace}/configmaps", tree).status == 201
    query = ObjectQuery(api_version="v1", kind="ConfigMap", namespace=namespace, labels="app=web")

    async def listed() -> list[tuple[list[str], bool]]:
        cluster = ClusterSession.at(connection_from_files([api_server.kubeconfig], None))
        try:
            found = [(size, await list_objects(cluster, query, 7, size)) for size in (1, 3, 7, 500)]
            too_many = [await list_objects(cluster, query, 6, size) is None for size, _ in found]
        finally:
            await cluster.client.close()
        names = [[text_at(one, "metadata", "name") for one in some or ()] for _, some in found]
        return list(zip(names, too_many, strict=True))

    assert asyncio.run(listed()) == [([f"a{number}" for number in range(7)], True)] * 4
