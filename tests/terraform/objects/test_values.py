"""What an object offers to others: nothing, a value, or one that is still to come."""

from functools import partial

from tests.terraform.objects.stage import A, B, Stage, config_map, declared
from tests.terraform.objects.waits import ADDRESS, BOTH, DEPENDENT, PATIENTLY, WAIT, address_known, service, timed_out

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


def bring_up(stage: Stage, name: str) -> None:
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    available = [{"type": "Available", "status": "True", **times}]
    stage.report("deployments", name, **dict.fromkeys(_COUNTS, 1), observedGeneration=1, conditions=available)


def test_waits_for_no_value_are_waited_for_and_offer_nothing(stage: Stage) -> None:
    text = "".join(
        declared(name, DEPLOYMENT.replace("TITLE", name), f"wait_for = {{ {wait} }}") for name, wait in WAITS.items()
    )
    stage.write(text)
    with (
        stage.meanwhile("deployments", "one", partial(bring_up, stage, "one")),
        stage.meanwhile("deployments", "two", partial(bring_up, stage, "two")),
        stage.meanwhile("deployments", "three", partial(bring_up, stage, "three")),
    ):
        stage.applied()

    assert [stage.state(f"setpoint_object.{name}")["status"] for name in WAITS] == [None, None, None]


def test_a_value_reaches_the_dependent_and_follows_when_it_changes(stage: Stage) -> None:
    planned = stage.planned(BOTH.replace(WAIT, PATIENTLY))
    assert (planned[A].unknown["status"], planned[B].unknown["projection"]) == (True, True)
    with stage.meanwhile("services", "web", partial(stage.give_address, "web", "192.0.2.1")):
        stage.applied()
    assert address_known(stage) == "192.0.2.1"
    assert stage.state()["status"]["value"] == {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    stage.give_address("web", "192.0.2.2")
    outcome = stage.plan()

    assert (outcome.actions, outcome.drifted) == ({B: "update"}, [A])
    stage.applied()
    assert address_known(stage) == "192.0.2.2"
    uid = stage.uid("services", "web")
    _lose_and_find_it_again(stage)
    assert stage.uid("services", "web") == uid


def _lose_and_find_it_again(stage: Stage) -> None:
    stage.give_address("web", None)
    planned = stage.planned(BOTH)
    assert (planned[A].actions, planned[A].unknown["status"]) == (["update"], True)
    assert planned[B].unknown["projection"] is True
    timed_out(stage)
    assert address_known(stage) == "192.0.2.2"
    assert "status" not in stage.project.instances()[A]
    stage.give_address("web", "192.0.2.3")
    stage.applied()
    assert address_known(stage) == "192.0.2.3"


def test_a_wait_that_is_added_or_changed_is_waited_for(stage: Stage) -> None:
    stage.applied(service(more=""))
    assert stage.state()["status"] is None
    uid = stage.uid("services", "web")
    planned = stage.planned(BOTH)
    assert (planned[A].actions, planned[A].unknown["status"]) == (["update"], True)
    timed_out(stage)
    stage.give_address("web", "192.0.2.1")
    stage.applied()
    longer = BOTH.replace("3s", "4s")
    planned = stage.planned(longer)
    assert (planned[A].actions, planned[A].unknown.get("status")) == (["update"], None)
    stage.applied()
    other = BOTH.replace(f'"{ADDRESS}"', '"spec.clusterIP"').replace(f"{A}.{ADDRESS}", f"{A}.status.spec.clusterIP")
    assert stage.planned(other)[A].unknown["status"] is True
    stage.applied()

    assert address_known(stage) == stage.get("services", "web")["spec"]["clusterIP"]
    assert stage.uid("services", "web") == uid
    stage.applied(service(more=""))
    assert stage.state()["status"] is None


def test_an_update_whose_wait_times_out_is_not_tainted_and_goes_on(stage: Stage) -> None:
    ready = declared("a", DEPLOYMENT.replace("TITLE", "web"), 'wait_for = { rollout = true, timeout = "60s" }')
    with stage.meanwhile("deployments", "web", partial(bring_up, stage, "web")):
        stage.applied(ready)
    uid = stage.uid("deployments", "web")
    dependent = declared("b", config_map("after"), f"depends_on = [{A}]")
    summary, detail = stage.failed(ready.replace("web:1", "web:2").replace("60s", "2s") + dependent)

    assert (summary, "status" in stage.project.instances()[A]) == ("Wait timed out", False)
    assert "the next apply goes on waiting" in detail
    assert stage.state()["projection"]["spec.template.spec.containers[name=web].image"] == "web:2"
    assert stage.get("configmaps", "after") is None
    assert stage.plan().actions == {A: "update", B: "create"}
    stage.report("deployments", "web", observedGeneration=2)
    stage.applied()
    assert stage.uid("deployments", "web") == uid


def test_without_a_wait_there_is_no_value_to_be_had(stage: Stage) -> None:
    stage.write(service(more="") + DEPENDENT)
    outcome = stage.apply()

    assert outcome.code == 1
    assert "null" in outcome.diagnostics[0].detail
