"""Many objects, and several clusters or users, in one run."""

from tests.terraform.objects.workspace import A, Workspace

MANY = """
resource "setpoint_object" "a" {
  for_each = toset([for number in range(25) : tostring(number)])
  manifest = {
    apiVersion = "v1"
    kind       = "ConfigMap"
    metadata   = { name = "settings-${each.key}", namespace = "NAMESPACE" }
    data       = { number = each.key }
  }
}
"""
TWO_USERS = """
provider "setpoint" {
  alias   = "alice"
  cluster = { config_path = "ALICE" }
}
resource "setpoint_object" "a" {
  manifest = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "one", namespace = "NAMESPACE" } }
}
resource "setpoint_object" "b" {
  provider = setpoint.alice
  manifest = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "two", namespace = "NAMESPACE" } }
}
"""


def test_many_objects_in_one_apply(workspace: Workspace) -> None:
    workspace.applied(MANY)

    found = workspace.access.call("GET", workspace.path("configmaps")).body["items"]
    assert sum(one["metadata"]["name"].startswith("settings-") for one in found) == 25
    assert len({workspace.state(f"{A}[{number}]")["id"] for number in range(25)}) == 25
    workspace.destroyed()
    found = workspace.access.call("GET", workspace.path("configmaps")).body["items"]
    assert not [one for one in found if one["metadata"]["name"].startswith("settings-")]


def test_two_users_in_one_run_each_with_their_own_permissions(workspace: Workspace) -> None:
    summary, detail = workspace.refused(TWO_USERS.replace("ALICE", str(workspace.access.kubeconfig_of("alice"))))
    assert (summary, 'User "alice" cannot get resource "configmaps"' in detail) == ("Remote refused", True), detail
    workspace.allow("alice")

    workspace.applied()
    assert workspace.get("configmaps", "one") is not None
    assert workspace.get("configmaps", "two") is not None
    workspace.destroyed()
