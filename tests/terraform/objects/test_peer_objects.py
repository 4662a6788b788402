"""Cases of objects that the acceptance tests of another provider have, several to a run: see `peer_cases`."""

import base64
import json

from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.terraform.objects.manifests import CUSTOM, DEFINITION
from tests.terraform.objects.workspace import Workspace, config_map, declared

ANNOTATION = "setpoint.dev/terraform-id"
ROLE = """
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata: {name: scoped-NAMESPACE, namespace: NAMESPACE}
    rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
    """
WEB = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: NAMESPACE}
    spec:
      replicas: 1
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1", imagePullPolicy: Always}]}
    """


def _connections(access: Access) -> dict[str, str]:
    """The ways to log in."""
    head = f'host = "{access.url}", cluster_ca_certificate = file("{access.certificate_authority}")'
    token = json.dumps(access.token_of("alice"))
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": access.token_of("alice")},
    }
    text = base64.b64encode(json.dumps(credential).encode()).decode()
    command = f'command = "sh", args = ["-c", "echo {text} | base64 -d"]'
    files = f'client_certificate = file("{access.folder}/admin.crt"), client_key = file("{access.folder}/admin.key")'
    return {
        "token": f"cluster = {{ {head}, token = {token} }}",
        "certificate": f"cluster = {{ {head}, {files} }}",
        "context": f'cluster = {{ config_path = "{access.kubeconfig_of("alice")}", context = "CONTEXT" }}',
        "exec": f"cluster = {{ {head}, exec = {{ {command} }} }}",
    }


def test_every_way_to_log_in_works_and_another_one_changes_nothing_of_the_object(workspace: Workspace) -> None:
    workspace.allow("alice")
    context = workspace.context_of("alice")
    ways = {name: one.replace("CONTEXT", context) for name, one in _connections(workspace.access).items()}
    workspace.applied("".join(declared(name, config_map(name), one) for name, one in ways.items()))
    uids = {name: workspace.uid("configmaps", name) for name in ways}
    others = dict(zip(ways, (*list(ways.values())[1:], ways["token"]), strict=True))
    changes = workspace.planned("".join(declared(name, config_map(name), one) for name, one in others.items()))

    assert {one.actions[0] for one in changes.values()} == {"update"}
    workspace.apply_planned()
    assert {name: workspace.uid("configmaps", name) for name in ways} == uids


def test_namespaces_are_inferred_and_annotations_that_were_lost_are_restored(workspace: Workspace) -> None:
    inferred = config_map("inferred-NAMESPACE", colour="blue").replace(", namespace: NAMESPACE", "")
    ignoring = config_map("ignoring", colour="blue", size="1")
    workspace.applied(
        'variable "ignored" { default = ["data.size"] }\n'
        + declared("inferred", inferred)
        + declared("scoped", ROLE)
        + declared("ignoring", ignoring, "ignore_fields = var.ignored")
        + declared("shared", config_map("shared", colour="blue"))
    )
    assert workspace.state("setpoint_object.inferred")["object_ref"]["namespace"] == "default"
    assert workspace.state("setpoint_object.scoped")["object_ref"]["namespace"] is None
    assert workspace.state("setpoint_object.ignoring")["projection"] == {"data.colour": "blue"}

    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"colour": "blue"}}
    workspace.declare("configmaps", "shared", theirs, "another-tool")
    workspace.assert_no_changes()
    workspace.edit("configmaps", "ignoring", {"metadata": {"annotations": {ANNOTATION: None}}})
    assert workspace.plan().actions == {"setpoint_object.ignoring": "update"}
    workspace.applied()
    assert ANNOTATION in workspace.get("configmaps", "ignoring")["metadata"]["annotations"]
    workspace.destroyed()


REFUSED = {
    "several": (WEB.replace("replicas:", "replcas:").replace("image:", "imge:"), ("replcas", "imge")),
    "conversion": (WEB.replace("replicas: 1", "replicas: three"), ("spec.replicas", "numeric")),
    "enum": (WEB.replace("Always", "Sometimes"), ("imagePullPolicy", "Sometimes", "IfNotPresent")),
    "rule": (CUSTOM.replace("{host: www}", "{host: www, ttl: 5}"), ("a ttl is 10 at least",)),
    "custom": (CUSTOM.replace("{host: www}", "{hots: www}"), ("hots",)),
    "uid": (config_map("uid").replace("{name: uid,", "{name: uid, uid: 1-2-3,"), ("uid",)),
    "version": (
        config_map("version").replace("{name: version,", "{name: version, resourceVersion: '7',"),
        ("Version",),
    ),
    "status": (WEB.rstrip() + "\n    status: {replicas: 3}\n", ("status",)),
}


def test_what_the_cluster_refuses_is_said_at_plan_in_its_words(workspace: Workspace) -> None:
    group = f"{workspace.namespace}.example.com"
    rule = "            x-kubernetes-validations: [{rule: self.ttl >= 10, message: a ttl is 10 at least}]\n"
    workspace.define((DEFINITION.rstrip() + "\n" + rule).replace("GROUP", group))
    workspace.write("".join(declared(label, text.replace("GROUP", group)) for label, (text, _) in REFUSED.items()))
    outcome = workspace.plan()
    details = {one.address.rpartition(".")[2]: one.detail for one in outcome.diagnostics}

    assert outcome.code == 1
    missing = {
        label: (word, details.get(label))
        for label, (_, words) in REFUSED.items()
        for word in words
        if word not in details.get(label, "")
    }
    assert missing == {}


def test_all_conflicts_are_named_and_finalizers_hold_a_deletion_until_its_timeout(workspace: Workspace) -> None:
    workspace.applied(
        declared("held", config_map("held"), 'delete_timeout = "100ms"')
        + declared("contested", config_map("contested", colour="blue", size="1"))
    )
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "contested"}}
    workspace.declare("configmaps", "contested", {**theirs, "data": {"colour": "red", "size": "2"}}, "another-tool")
    _, detail = workspace.refused()
    assert [field for field in ("data.colour", "data.size", "another-tool") if field not in detail] == []

    workspace.edit("configmaps", "held", {"metadata": {"finalizers": ["example.com/busy"]}})
    workspace.write(declared("contested", config_map("contested", colour="blue", size="1"), "force_conflicts = true"))
    outcome = workspace.apply()
    assert [one.summary for one in outcome.diagnostics] == ["Wait timed out"]
    assert "example.com/busy" in outcome.diagnostics[0].detail
    assert "setpoint_object.held" in workspace.project.instances()
    workspace.edit("configmaps", "held", {"metadata": {"finalizers": None}})
    workspace.applied()
    assert workspace.get("configmaps", "contested")["data"] == {"colour": "blue", "size": "1"}


def test_an_object_whose_definition_was_removed_is_destroyed(workspace: Workspace) -> None:
    group = f"{workspace.namespace}.example.com"
    workspace.define(DEFINITION.replace("GROUP", group))
    workspace.applied(declared("custom", CUSTOM.replace("GROUP", group)))
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/records.{group}"
    assert workspace.access.call("DELETE", path).status == 200
    until(lambda: workspace.access.call("GET", path).status == 404)

    workspace.destroyed()
    assert workspace.project.instances() == {}
