"""`setpoint_wait` and the data source: objects that another controller manages, on a real API server."""

from typing import Any

from tests.terraform.objects.workspace import Workspace

WAIT = """
resource "setpoint_wait" "w" {
  object_ref = { api_version = "v1", kind = "Pod", name = "web", namespace = "NAMESPACE" }
  wait_for   = { WAIT, timeout = "TIMEOUT" }
}
resource "setpoint_object" "after" {
  manifest = {
    apiVersion = "v1"
    kind       = "ConfigMap"
    metadata   = { name = "after", namespace = "NAMESPACE" }
    data       = { found = jsonencode(setpoint_wait.w.result) }
  }
}
"""
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}


def text(wait: str, timeout: str = "240s") -> str:
    return WAIT.replace("WAIT", wait).replace("TIMEOUT", timeout)


def make_pod(workspace: Workspace, **status: Any) -> None:
    workspace.access.call("POST", workspace.path("pods"), POD)
    set_status(workspace, **status)


def set_status(workspace: Workspace, **status: Any) -> None:
    answer = workspace.access.call("PATCH", workspace.path("pods", "web") + "/status", {"status": status})
    assert answer.status == 200, answer.body


def found(workspace: Workspace) -> Any:
    return workspace.get("configmaps", "after")["data"]["found"]


def test_an_object_that_is_created_later_is_waited_for(workspace: Workspace) -> None:
    workspace.write(text('field = "status.podIP"'))
    applied = workspace.project.apply_until_started("setpoint_wait.w", lambda: make_pod(workspace, podIP="10.0.0.7"))

    assert (applied.code, applied.diagnostics) == (0, [])
    assert found(workspace) == '{"status":{"podIP":"10.0.0.7"}}'
    assert workspace.plan().code == 0
    set_status(workspace, podIP="10.0.0.8")
    assert workspace.plan().actions == {"setpoint_object.after": "update"}


def test_a_wait_that_times_out_is_not_in_the_state_and_continues_with_the_next_apply(workspace: Workspace) -> None:
    workspace.write(text('condition = "Ready"', "100ms"))
    assert [one.summary for one in workspace.apply().diagnostics] == ["Wait timed out"]
    assert "setpoint_wait.w" not in workspace.project.instances()
    assert workspace.get("configmaps", "after") is None

    make_pod(workspace, conditions=[{"type": "Ready", "status": "True"}])
    assert workspace.apply().code == 0
    assert (found(workspace), workspace.plan().code) == ("null", 0)
    # A satisfied wait stays satisfied for the same object; a new object has to satisfy it again.
    set_status(workspace, conditions=[{"type": "Ready", "status": "False"}])
    assert workspace.plan().code == 0
    workspace.access.call("DELETE", f"{workspace.path('pods', 'web')}?gracePeriodSeconds=0")
    make_pod(workspace, conditions=[])
    assert workspace.plan().actions == {"setpoint_wait.w": "update", "setpoint_object.after": "update"}


SOURCE = """
data "setpoint_object" "a" {
  api_version = "v1"
  kind        = "KIND"
  name        = "NAME"
  namespace   = "NAMESPACE"
  optional    = OPTIONAL
}
output "found" { value = data.setpoint_object.a.object }
"""


def source(kind: str, name: str, optional: str = "false") -> str:
    return SOURCE.replace("KIND", kind).replace("NAME", name, 1).replace("OPTIONAL", optional)


def output(workspace: Workspace) -> Any:
    applied = workspace.apply()
    assert applied.code == 0, applied.diagnostics
    return [one["outputs"] for one in applied.events if one["type"] == "outputs"][-1].get("found", {}).get("value")


def test_a_data_source_reads_an_object_and_a_secret_without_its_values(workspace: Workspace) -> None:
    for kind, name in (("ConfigMap", "settings"), ("Secret", "login")):
        document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": {"a": "aGk="}}
        workspace.access.call("POST", workspace.path(f"{kind.lower()}s"), document)

    workspace.write(source("ConfigMap", "settings"))
    settings = output(workspace)
    assert (settings["data"], "managedFields" in settings["metadata"]) == ({"a": "aGk="}, False)
    workspace.write(source("Secret", "login"))
    assert "data" not in output(workspace)
    workspace.write(source("ConfigMap", "none", "true"))
    assert output(workspace) is None
    workspace.write(source("ConfigMap", "none"))
    assert [one.summary for one in workspace.apply().diagnostics] == ["No such object"]
