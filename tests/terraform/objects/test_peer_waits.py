"""Cases of waits that the acceptance tests of another provider have, several to a run: see `peer_cases`."""

from typing import Any

from tests.terraform.objects.workspace import Workspace

LABELS: dict[str, Any] = {"app": "web"}
CONTAINERS = {"containers": [{"name": "web", "image": "web:1"}]}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": CONTAINERS}
WORKLOAD = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
COUNTS = {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "observedGeneration": 1}
CURRENT = {"currentReplicas": 1, "currentRevision": "a", "updateRevision": "a"}
SCHEDULED = {"desiredNumberScheduled": 1, "numberReady": 1, "updatedNumberScheduled": 1, "numberAvailable": 1}
MORE_SCHEDULED = {"currentNumberScheduled": 1, "numberMisscheduled": 0, "observedGeneration": 1}
FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "it has failed too often"}
FAILURE = {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}
INGRESS = [{"ip": "192.0.2.1", "ipMode": "VIP"}, {"hostname": "www.example.com"}]


def _wait(label: str, ref: str, wait: str, timeout: str = "240s") -> str:
    return (
        f'resource "setpoint_wait" "{label}" {{\n  object_ref = {{ {ref} }}\n'
        f'  wait_for   = {{ {wait}, timeout = "{timeout}" }}\n}}\n'
    )


def _ref(kind: str, name: str, api_version: str = "v1") -> str:
    return f'api_version = "{api_version}", kind = "{kind}", name = "{name}", namespace = "NAMESPACE"'


SPACE = 'api_version = "v1", kind = "Namespace", name = "NAMESPACE"'
# Waits for objects that are as they should be, and the value that each gives.
SATISFIED = {
    "phase": (SPACE, 'field = "status.phase"', {"status": {"phase": "Active"}}),
    "one": (_ref("Pod", "web"), 'field_value = { "status.phase" = "Running" }', None),
    "two": (_ref("Pod", "web"), 'field_value = { "status.phase" = "Running", "status.podIP" = "10.0.0.7" }', None),
    "bound": (_ref("PersistentVolumeClaim", "claim"), 'field_value = { "status.phase" = "Bound" }', None),
    "volume": (_ref("PersistentVolumeClaim", "claim"), 'field = "spec.volumeName"', {"spec": {"volumeName": "disk"}}),
    "ready": (_ref("Pod", "web"), 'condition = "Ready"', None),
    "deployment": (_ref("Deployment", "web", "apps/v1"), "rollout = true", None),
    "stateful": (_ref("StatefulSet", "web", "apps/v1"), "rollout = true", None),
    "daemons": (_ref("DaemonSet", "web", "apps/v1"), "rollout = true", None),
    "address": (_ref("Service", "web"), 'field = "spec.clusterIP"', {"spec": {"clusterIP": "None"}}),
    "uid": (_ref("Service", "web"), 'field = "metadata.uid"', {"metadata": {"uid": "UID"}}),
    "ingress": (
        _ref("Service", "balanced"),
        'field = "status.loadBalancer.ingress"',
        {"status": {"loadBalancer": {"ingress": INGRESS}}},
    ),
}


def _make(workspace: Workspace, kind: str, group: str, spec: dict[str, Any], status: dict[str, Any]) -> None:
    """Makes an object named `web`, as another writer, and gives it a status, as its controller does."""
    path = f"/{group}/namespaces/{workspace.namespace}/{kind}"
    made = workspace.access.call("POST", path, {"metadata": {"name": "web"}, "spec": spec})
    assert made.status == 201, made
    answer = workspace.access.call("PATCH", f"{path}/web/status", {"status": status})
    assert answer.status == 200, answer


def _make_all(workspace: Workspace) -> None:
    conditions = [{"type": "Ready", "status": "True"}]
    pod = {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}], "conditions": conditions}
    _make(workspace, "pods", "api/v1", {"containers": [{"name": "web", "image": "web:1"}]}, pod)
    _make(workspace, "deployments", "apis/apps/v1", WORKLOAD, COUNTS)
    _make(workspace, "statefulsets", "apis/apps/v1", {**WORKLOAD, "serviceName": "web"}, {**COUNTS, **CURRENT})
    _make(workspace, "daemonsets", "apis/apps/v1", WORKLOAD, {**SCHEDULED, **MORE_SCHEDULED})
    _make(workspace, "services", "api/v1", {"clusterIP": "None", "ports": [{"port": 80}]}, {})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "disk"}
    workspace.make("persistentvolumeclaims", {"metadata": {"name": "claim", "finalizers": []}, "spec": claim})
    workspace.edit("persistentvolumeclaims", "claim", {"metadata": {"finalizers": None}})
    workspace.report("persistentvolumeclaims", "claim", phase="Bound")
    workspace.make(
        "services", {"metadata": {"name": "balanced"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    )
    workspace.report("services", "balanced", loadBalancer={"ingress": INGRESS})


def test_every_wait_is_satisfied_with_its_value_and_a_changed_one_waits_again_in_place(workspace: Workspace) -> None:
    _make_all(workspace)
    text = "".join(_wait(label, ref, wait) for label, (ref, wait, _) in SATISFIED.items())
    output = 'output "phase" { value = setpoint_wait.phase.result.status.phase }\n'
    workspace.applied(text + output)
    uid = workspace.uid("services", "web")
    expected = {label: value for label, (_, _, value) in SATISFIED.items()} | {"uid": {"metadata": {"uid": uid}}}
    found = {label: workspace.state(f"setpoint_wait.{label}")["result"] for label in SATISFIED}
    assert {label: one if one is None else one["value"] for label, one in found.items()} == expected

    changed = text.replace('condition = "Ready", timeout = "240s"', 'condition = "Ready", timeout = "120s"')
    changed = changed.replace(
        'field_value = { "status.phase" = "Running" }', 'field_value = { "status.podIP" = "10.0.0.7" }'
    )
    assert {address: one.actions for address, one in workspace.planned(changed).items()} == {
        "setpoint_wait.ready": ["update"],
        "setpoint_wait.one": ["update"],
    }
    workspace.apply_planned()


FAILING = {
    "impossible": (_ref("Service", "web"), 'field = "status.nothing"', ("status.nothing",)),
    "absent": (_ref("Pod", "absent"), 'condition = "Ready"', ("absent",)),
    "unserved": (_ref("Nothing", "web", "example.com/v1"), 'condition = "Ready"', ("Nothing",)),
    "failed": (_ref("Job", "web", "batch/v1"), 'condition = "Complete"', ("it has failed too often",)),
}
INVALID = {
    "negative": (_ref("Pod", "web"), 'field = "a"', "-1s"),
    "zero": (_ref("Pod", "web"), 'field = "a"', "0s"),
    "path": (_ref("Pod", "web"), 'field = "a[["', "1s"),
    "rollout": (_ref("ConfigMap", "web"), "rollout = true", "1s"),
}


def test_a_wait_that_cannot_be_satisfied_says_why_and_leaves_the_object(workspace: Workspace) -> None:
    template = {"spec": {**CONTAINERS, "restartPolicy": "Never"}}
    times = {"startTime": "2026-01-01T00:00:00Z", "failed": 1}
    _make(workspace, "jobs", "apis/batch/v1", {"template": template}, {**times, "conditions": [FAILURE, FAILED]})
    _make(workspace, "services", "api/v1", {"clusterIP": "None", "ports": [{"port": 80}]}, {})
    workspace.write("".join(_wait(label, ref, wait, "100ms") for label, (ref, wait, _) in FAILING.items()))
    outcome = workspace.apply()
    details = {one.address.rpartition(".")[2]: one.detail for one in outcome.diagnostics}
    assert {one.summary for one in outcome.diagnostics} == {"Wait timed out", "Wait failed"}
    missing = {
        label: details for label, (_, _, words) in FAILING.items() if not all(one in details[label] for one in words)
    }
    assert missing == {}
    assert workspace.get("services", "web") is not None

    workspace.write("".join(_wait(label, *one) for label, one in INVALID.items()))
    shown = {one.address.rpartition(".")[2]: one.summary for one in workspace.plan().diagnostics}
    assert shown == dict.fromkeys(INVALID, "No such wait")


def test_a_cluster_scoped_object_that_is_created_later_is_waited_for(workspace: Workspace) -> None:
    name = f"{workspace.namespace}-later"
    ref = f'api_version = "v1", kind = "Namespace", name = "{name}"'
    workspace.write(_wait("later", ref, 'field = "status.phase"'))

    def create() -> None:
        workspace.access.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    outcome = workspace.project.apply_until_started("setpoint_wait.later", create)
    workspace.access.delete_namespace(name)

    assert (outcome.code, outcome.diagnostics) == (0, [])
    assert workspace.state("setpoint_wait.later")["result"]["value"] == {"status": {"phase": "Active"}}
