"""Many objects, and several clusters or users, in one run."""

from tests.terraform.objects.stage import A, Stage

FIFTY = """
resource "setpoint_object" "a" {
  for_each = toset([for number in range(50) : tostring(number)])
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


def test_fifty_objects_in_one_apply(stage: Stage) -> None:
    stage.applied(FIFTY)

    found = stage.access.call("GET", stage.path("configmaps")).body["items"]
    assert sum(one["metadata"]["name"].startswith("settings-") for one in found) == 50
    assert len({stage.state(f"{A}[{number}]")["id"] for number in range(50)}) == 50
    stage.destroyed()
    found = stage.access.call("GET", stage.path("configmaps")).body["items"]
    assert not [one for one in found if one["metadata"]["name"].startswith("settings-")]


def test_two_users_at_once_each_with_what_is_allowed_to_them(stage: Stage) -> None:
    summary, detail = stage.refused(TWO_USERS.replace("ALICE", str(stage.access.kubeconfig_of("alice"))))
    assert (summary, 'User "alice" cannot get resource "configmaps"' in detail) == ("Remote refused", True), detail
    stage.allow("alice")

    stage.applied()
    assert stage.get("configmaps", "one") is not None
    assert stage.get("configmaps", "two") is not None
    stage.destroyed()
