"""What changes between a plan and its apply, or is not known at plan: applied as planned, or an error of ours."""

from contextlib import ExitStack

from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.terraform.command import Outcome
from tests.terraform.objects.admission import NOT_IN_PLANS, mutating
from tests.terraform.objects.manifests import CUSTOM, DEFINITION
from tests.terraform.objects.waits import WAIT
from tests.terraform.objects.workspace import Workspace, config_map, declared, valued

OUTDATED = "The plan no longer holds"
DEVIATION = "The result is not as planned"
EXISTS = "The object is there already"

BUSY = {"metadata": {"finalizers": ["example.com/busy"]}}
SERVICE = """
    apiVersion: v1
    kind: Service
    metadata: {name: LABEL, namespace: NAMESPACE}
    spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
    """


def _service(label: str, more: str) -> str:
    return declared(label, SERVICE.replace("LABEL", label), more)


def _errors(outcome: Outcome) -> dict[str, str]:
    """The summary of each error, by the label of its resource: none is Terraform's own about this provider."""
    shown = [one for one in outcome.diagnostics if one.severity == "error"]
    assert [f"{one.summary}: {one.detail}" for one in shown if "Provider" in one.summary] == []
    return {one.address.rpartition(".")[2]: one.summary for one in shown}


def _apply_plan(workspace: Workspace) -> dict[str, str]:
    return _errors(workspace.project.run("apply", "-json", "-input=false", "plan"))


def _made_again(workspace: Workspace, name: str) -> None:
    """Another writer deletes a ConfigMap and creates one of the same name."""
    assert workspace.access.call("DELETE", workspace.path("configmaps", name)).status == 200
    workspace.make("configmaps", {"metadata": {"name": name}, "data": {"colour": "theirs"}})


COLOURED = ("frozen", "held", "gone", "remade", "mutated", "late", "edited")


def _existing(colour: str, note: str = "", more: str = "") -> str:
    text = "".join(declared(one, config_map(one, colour=colour)) for one in COLOURED)
    # The document is the same: a comment is no change, but the drift of the live object is one.
    text += declared("comment", note + config_map("comment", colour="blue"))
    return text + "".join(_service(one, WAIT + "\n" + more) for one in ("addressed", "drifting"))


def test_an_update_is_applied_as_planned_or_says_that_the_plan_no_longer_holds(workspace: Workspace) -> None:
    workspace.applied(_existing("blue").replace(WAIT, ""))
    for name in ("addressed", "drifting"):
        workspace.give_address(name, "192.0.2.1")
    workspace.applied(_existing("blue"))
    workspace.edit("configmaps", "comment", {"data": {"colour": "edited"}})
    changes = workspace.planned(_existing("red", "# The colour of the front.\n", 'delete_timeout = "1m"'))
    assert {one.actions[0] for one in changes.values()} == {"update"}
    assert len(changes) == len(COLOURED) + 3

    workspace.edit("configmaps", "comment", {"data": {"colour": "blue"}})
    workspace.edit("configmaps", "frozen", {"immutable": True})
    workspace.edit("configmaps", "held", BUSY)
    for name in ("held", "gone"):
        workspace.access.call("DELETE", workspace.path("configmaps", name))
    _made_again(workspace, "remade")
    workspace.edit("configmaps", "edited", {"data": {"colour": "yellow", "size": "1"}})
    workspace.give_address("addressed", "192.0.2.2")
    workspace.edit("services", "drifting", {"spec": {"selector": {"app": "other"}}})
    with ExitStack() as policies:
        policies.enter_context(mutating(workspace.access, workspace.namespace, "mutated"))
        policies.enter_context(mutating(workspace.access, workspace.namespace, "late", NOT_IN_PLANS))
        errors = _apply_plan(workspace)

        assert errors == {
            "frozen": OUTDATED,
            "held": OUTDATED,
            "remade": EXISTS,
            "mutated": OUTDATED,
            "late": DEVIATION,
        }
        # The next plan shows what the cluster makes of it.
        assert workspace.state("setpoint_object.late")["projection"] == {"data.colour": "green"}
    workspace.edit("configmaps", "held", {"metadata": {"finalizers": None}})
    workspace.access.call("DELETE", workspace.path("configmaps", "remade"))
    workspace.applied_in_the_end()
    assert workspace.state("setpoint_object.addressed")["status"]["value"]["loadBalancer"]["ingress"] == [
        {"ip": "192.0.2.2"}
    ]


def _late(value: str, kubeconfig: str = "KUBECONFIG") -> str:
    """Objects with values that are not known at plan."""
    secret = """{
      apiVersion = "v1"
      kind       = "Secret"
      metadata   = { name = "immutable", namespace = "NAMESPACE" }
      type       = "example.com/${terraform_data.x.output.name}"
    }"""
    data = f'{{ name = "{value}", path = "{kubeconfig}", force = true, field = "spec.clusterIP" }}'
    return (
        f'resource "terraform_data" "x" {{ input = {data} }}\n'
        + valued("immutable", secret)
        + declared("named", config_map("named-${terraform_data.x.output.name}"))
        + declared(
            "ignoring",
            config_map("ignoring", one="1", two="2"),
            'ignore_fields = ["data.${terraform_data.x.output.name}"]',
        )
        + declared("forcing", config_map("forcing", one=value), "force_conflicts = terraform_data.x.output.force")
        + declared("moving", config_map("moving"), "cluster = { config_path = terraform_data.x.output.path }")
        + _service("waiting", "wait_for = { field = terraform_data.x.output.field }")
    )


def test_a_value_that_is_unknown_at_plan_is_applied_or_its_error_says_to_plan_again(
    workspace: Workspace, other_api_server: Access
) -> None:
    workspace.applied(_late("one"))
    other_api_server.call("POST", "/api/v1/namespaces", {"metadata": {"name": workspace.namespace}})
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "forcing"}, "data": {"one": "theirs"}}
    workspace.declare("configmaps", "forcing", theirs, "another-tool")
    changes = workspace.planned(_late("two", str(other_api_server.kubeconfig)))
    assert {address: one.actions for address, one in changes.items()} == {
        f"{type_}.{label}": ["update"]
        for type_, label in (
            ("terraform_data", "x"),
            *(("setpoint_object", one) for one in ("immutable", "named", "ignoring", "forcing", "moving")),
            ("setpoint_object", "waiting"),
        )
    }

    assert _apply_plan(workspace) == {"immutable": OUTDATED, "named": OUTDATED, "moving": OUTDATED}
    # What was unknown is known by now.
    changes = workspace.planned()
    assert {address: one.actions for address, one in changes.items()} == {
        f"setpoint_object.{one}": ["delete", "create"] for one in ("immutable", "named", "moving")
    }
    workspace.apply_planned()
    workspace.destroyed()


def _new(group: str) -> str:
    names = ("mutated", "late", "made", "settled")
    elsewhere = config_map("elsewhere").replace("namespace: NAMESPACE", "namespace: NAMESPACE-gone")
    return (
        "".join(declared(one, config_map(one, colour="blue")) for one in names)
        + declared("elsewhere", elsewhere)
        + declared("custom", CUSTOM.replace("GROUP", f"gone.{group}"))
        + declared("defaulted", CUSTOM.replace("GROUP", group).replace("{host: www}", "{}"))
    )


def test_a_create_is_applied_as_planned_or_says_that_the_plan_no_longer_holds(workspace: Workspace) -> None:
    access, group = workspace.access, f"{workspace.namespace}.example.com"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    access.call("POST", "/api/v1/namespaces", {"metadata": {"name": f"{workspace.namespace}-gone"}})
    plain = DEFINITION.replace(", default: 60", "")
    for one in (group, f"gone.{group}"):
        workspace.define(plain.replace("GROUP", one))
    changes = workspace.planned(_new(group))
    assert [address for address, one in changes.items() if one.unknown.get("projection")] == []

    access.call("DELETE", f"/api/v1/namespaces/{workspace.namespace}-gone")
    access.call("DELETE", f"{definitions}/records.gone.{group}")
    workspace.define(DEFINITION.replace("GROUP", group))
    workspace.make("configmaps", {"metadata": {"name": "made"}, "data": {"colour": "theirs"}})
    until(lambda: access.call("GET", f"{definitions}/records.gone.{group}").status == 404)
    with ExitStack() as policies:
        policies.enter_context(mutating(access, workspace.namespace, "mutated"))
        policies.enter_context(mutating(access, workspace.namespace, "late", NOT_IN_PLANS))
        errors = _apply_plan(workspace)

        assert errors == {
            "mutated": OUTDATED,
            "late": DEVIATION,
            "made": EXISTS,
            "elsewhere": OUTDATED,
            "custom": OUTDATED,
            "defaulted": OUTDATED,
        }
    # It exists, and is kept: neither deleted nor made anew.
    uid = workspace.uid("configmaps", "late")
    access.call("DELETE", workspace.path("configmaps", "made"))
    left = declared("late", config_map("late", colour="blue")) + declared(
        "settled", config_map("settled", colour="blue")
    )
    workspace.write(left)
    assert _errors(workspace.apply()) == {}
    workspace.assert_no_changes()
    assert workspace.uid("configmaps", "late") == uid
    assert workspace.get("configmaps", "late")["data"] == {"colour": "blue"}
