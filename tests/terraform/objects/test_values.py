"""The status of an object for dependent resources: null, a value, or unknown."""

from functools import partial

from tests.terraform.objects.waits import (
    ADDRESS,
    BOTH,
    DEPENDENT,
    LONG_WAIT,
    TIMEOUT,
    WAIT,
    address_known,
    service,
    timed_out,
)
from tests.terraform.objects.workspace import A, B, Workspace, config_map, declared

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: TITLE, namespace: NAMESPACE}
spec:
  replicas: 1
  selector: {matchLabels: {app: TITLE}}
  template:
    metadata: {labels: {app: TITLE}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""
WAITS = {
    "one": 'condition = "Available"',
    "two": 'field_value = { "status.readyReplicas" = 1, "status.conditions[type=Available].status" = "True" }',
    "three": "rollout = true",
}
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def report_available(workspace: Workspace, name: str) -> None:
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    available = [{"type": "Available", "status": "True", **times}]
    workspace.report("deployments", name, **dict.fromkeys(_COUNTS, 1), observedGeneration=1, conditions=available)


def test_waits_without_a_value_are_satisfied_and_have_no_status(workspace: Workspace) -> None:
    text = "".join(
        declared(name, DEPLOYMENT.replace("TITLE", name), f"wait_for = {{ {wait} }}") for name, wait in WAITS.items()
    )
    workspace.write(text)
    with (
        workspace.meanwhile("deployments", "one", partial(report_available, workspace, "one")),
        workspace.meanwhile("deployments", "two", partial(report_available, workspace, "two")),
        workspace.meanwhile("deployments", "three", partial(report_available, workspace, "three")),
    ):
        workspace.applied()

    assert [workspace.state(f"setpoint_object.{name}")["status"] for name in WAITS] == [None, None, None]


def test_a_value_reaches_the_dependent_resource_and_follows_changes(workspace: Workspace) -> None:
    planned = workspace.planned(BOTH.replace(WAIT, LONG_WAIT))
    assert (planned[A].unknown["status"], planned[B].unknown["projection"]) == (True, True)
    with workspace.meanwhile("services", "web", partial(workspace.give_address, "web", "192.0.2.1")):
        workspace.apply_planned()
    assert address_known(workspace) == "192.0.2.1"
    assert workspace.state()["status"]["value"] == {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    workspace.give_address("web", "192.0.2.2")
    outcome = workspace.plan()

    assert (outcome.actions, outcome.drifted) == ({B: "update"}, [A])
    workspace.applied()
    assert address_known(workspace) == "192.0.2.2"
    uid = workspace.uid("services", "web")
    _remove_and_restore_the_value(workspace)
    assert workspace.uid("services", "web") == uid


def _remove_and_restore_the_value(workspace: Workspace) -> None:
    workspace.give_address("web", None)
    planned = workspace.planned(BOTH)
    assert (planned[A].actions, planned[A].unknown["status"]) == (["update"], True)
    assert planned[B].unknown["projection"] is True
    timed_out(workspace)
    assert address_known(workspace) == "192.0.2.2"
    assert "status" not in workspace.project.instances()[A]
    workspace.give_address("web", "192.0.2.3")
    workspace.applied()
    assert address_known(workspace) == "192.0.2.3"


def test_a_wait_that_is_added_or_changed_is_waited_for(workspace: Workspace) -> None:
    workspace.applied(service(more=""))
    assert workspace.state()["status"] is None
    uid = workspace.uid("services", "web")
    planned = workspace.planned(BOTH)
    assert (planned[A].actions, planned[A].unknown["status"]) == (["update"], True)
    timed_out(workspace)
    workspace.give_address("web", "192.0.2.1")
    workspace.applied()
    longer = BOTH.replace(TIMEOUT, "200ms")
    planned = workspace.planned(longer)
    assert (planned[A].actions, planned[A].unknown.get("status")) == (["update"], None)
    workspace.apply_planned()
    other = BOTH.replace(f'"{ADDRESS}"', '"spec.clusterIP"').replace(f"{A}.{ADDRESS}", f"{A}.status.spec.clusterIP")
    assert workspace.planned(other)[A].unknown["status"] is True
    workspace.apply_planned()

    assert address_known(workspace) == workspace.get("services", "web")["spec"]["clusterIP"]
    assert workspace.uid("services", "web") == uid
    workspace.applied(service(more=""))
    assert workspace.state()["status"] is None


def test_an_update_with_a_wait_that_times_out_is_not_tainted_and_continues(workspace: Workspace) -> None:
    ready = declared("a", DEPLOYMENT.replace("TITLE", "web"), 'wait_for = { rollout = true, timeout = "240s" }')
    with workspace.meanwhile("deployments", "web", partial(report_available, workspace, "web")):
        workspace.applied(ready)
    uid = workspace.uid("deployments", "web")
    dependent = declared("b", config_map("after"), f"depends_on = [{A}]")
    summary, detail = workspace.failed(ready.replace("web:1", "web:2").replace("240s", TIMEOUT) + dependent)

    assert (summary, "status" in workspace.project.instances()[A]) == ("Wait timed out", False)
    assert "the next apply goes on waiting" in detail
    assert workspace.state()["projection"]["spec.template.spec.containers[name=web].image"] == "web:2"
    assert workspace.get("configmaps", "after") is None
    assert workspace.plan().actions == {A: "update", B: "create"}
    workspace.report("deployments", "web", observedGeneration=2)
    workspace.applied()
    assert workspace.uid("deployments", "web") == uid


def test_without_a_wait_there_is_no_status(workspace: Workspace) -> None:
    workspace.write(service(more="") + DEPENDENT)
    outcome = workspace.apply()

    assert outcome.code == 1
    assert "null" in outcome.diagnostics[0].detail
