"""`setpoint_wait` and the data source: objects that others manage, on a real API server."""

import threading
from typing import Any

from tests.terraform.objects.stage import Stage

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


def text(wait: str, timeout: str = "60s") -> str:
    return WAIT.replace("WAIT", wait).replace("TIMEOUT", timeout)


def make_pod(stage: Stage, **status: Any) -> None:
    stage.access.call("POST", stage.path("pods"), POD)
    set_status(stage, **status)


def set_status(stage: Stage, **status: Any) -> None:
    answer = stage.access.call("PATCH", stage.path("pods", "web") + "/status", {"status": status})
    assert answer.status == 200, answer.body


def found(stage: Stage) -> Any:
    return stage.get("configmaps", "after")["data"]["found"]


def test_an_object_that_somebody_makes_later_is_waited_for(stage: Stage) -> None:
    stage.write(text('field = "status.podIP"'))
    later = threading.Timer(4, make_pod, [stage], {"podIP": "10.0.0.7"})
    later.start()
    applied = stage.apply()
    later.join()

    assert (applied.code, applied.diagnostics) == (0, [])
    assert found(stage) == '{"status":{"podIP":"10.0.0.7"}}'
    assert stage.plan().code == 0
    set_status(stage, podIP="10.0.0.8")
    assert stage.plan().actions == {"setpoint_object.after": "update"}


def test_a_wait_that_times_out_is_not_in_the_state_and_goes_on_with_the_next_apply(stage: Stage) -> None:
    stage.write(text('condition = "Ready"', "2s"))
    assert [one.summary for one in stage.apply().diagnostics] == ["Wait timed out"]
    assert "setpoint_wait.w" not in stage.project.instances()
    assert stage.get("configmaps", "after") is None

    make_pod(stage, conditions=[{"type": "Ready", "status": "True"}])
    assert stage.apply().code == 0
    assert (found(stage), stage.plan().code) == ("null", 0)
    # How it fares later is another matter; another object is another one.
    set_status(stage, conditions=[{"type": "Ready", "status": "False"}])
    assert stage.plan().code == 0
    stage.access.call("DELETE", f"{stage.path('pods', 'web')}?gracePeriodSeconds=0")
    make_pod(stage, conditions=[])
    assert stage.plan().actions == {"setpoint_wait.w": "update", "setpoint_object.after": "update"}


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


def output(stage: Stage) -> Any:
    applied = stage.apply()
    assert applied.code == 0, applied.diagnostics
    return [one["outputs"] for one in applied.events if one["type"] == "outputs"][-1].get("found", {}).get("value")


def test_an_object_is_read_as_it_is_and_a_secret_without_its_values(stage: Stage) -> None:
    for kind, name in (("ConfigMap", "settings"), ("Secret", "login")):
        document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": {"a": "aGk="}}
        stage.access.call("POST", stage.path(f"{kind.lower()}s"), document)

    stage.write(source("ConfigMap", "settings"))
    settings = output(stage)
    assert (settings["data"], "managedFields" in settings["metadata"]) == ({"a": "aGk="}, False)
    stage.write(source("Secret", "login"))
    assert "data" not in output(stage)
    stage.write(source("ConfigMap", "none", "true"))
    assert output(stage) is None
    stage.write(source("ConfigMap", "none"))
    assert [one.summary for one in stage.apply().diagnostics] == ["No such object"]
