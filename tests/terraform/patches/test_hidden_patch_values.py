"""Values of patches that may be secret: no output, error, log or private state has them. Other values are shown."""

from typing import Final

from tests.terraform.objects.secret_marks import MARKS, VARIABLE, Outputs, marks_in
from tests.terraform.objects.workspace import Workspace
from tests.terraform.patches.configurations import make_config_map, patched, warnings_of

_OPERATIONS: Final = """json_patch = [
    { op = "test", path = "/data/colour", value = "red" },
    { op = "replace", path = "/data/colour", value = var.marks[3] },
    { op = "add", path = "/metadata/annotations", value = { note = var.marks[4] } },
    { op = "add", path = "/metadata/labels", value = { tier = "front" } },
  ]"""


def _patches(image: str, secret: str) -> str:
    env = f'env = [{{ name = "PASSWORD", value = {secret} }}]'
    container = f'{{ name = "web", image = "{image}", args = ["--password=${{var.marks[2]}}"], {env} }}'
    spec = f"patch = {{ spec = {{ replicas = 4, template = {{ spec = {{ containers = [{container}] }} }} }} }}"
    return (
        VARIABLE
        + patched("a", "web", spec, kind="Deployment", version="apps/v1")
        + patched("b", "merged", f"merge_patch = {{ data = {{ colour = {secret}, size = null }} }}")
        + patched("c", "operated", _OPERATIONS)
    )


def test_plans_drift_errors_and_what_goes_back_show_paths_and_open_values_alone(workspace: Workspace) -> None:
    container = {"name": "web", "image": "web:1", "env": [{"name": "PASSWORD", "value": MARKS[5]}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    workspace.make("deployments", {"metadata": {"name": "web"}, "spec": spec})
    make_config_map(workspace, "merged", {"colour": MARKS[6], "size": MARKS[7]})
    make_config_map(workspace, "operated", {"colour": "red"})
    outputs = Outputs(workspace)
    workspace.write(_patches("web:2", "var.marks[0]"))
    outputs.run("apply", "-auto-approve")
    workspace.edit("deployments", "web", {"spec": {"replicas": 9}})
    workspace.edit("configmaps", "operated", {"data": {"colour": MARKS[7]}})
    outputs.run("plan", "-refresh-only")
    workspace.write(_patches("web:3", "var.marks[1]"))
    changed = " ".join(outputs.run("apply", "-auto-approve").split())
    outputs.run("show")
    wrong = patched("d", "merged", "merge_patch = { data = { a = { b = var.marks[0] } } }")
    workspace.write(_patches("web:3", "var.marks[1]") + wrong)
    refused = outputs.run("plan")
    workspace.write(_patches("web:3", "var.marks[1]").replace('"red"', "var.marks[5]"))
    failed_test = outputs.run("apply", "-auto-approve")
    workspace.write(_patches("web:3", "var.marks[1]"))
    said = warnings_of(workspace.project.destroy())

    assert (outputs.marks, marks_in(str(said))) == ([], [])
    assert '~ "spec.replicas" = "9" -> "4"' in changed
    assert '[name=web].image" = "web:2" -> "web:3"' in changed
    assert '~ "data.colour" = "(hidden, version 1)" -> "(hidden, version 2)"' in changed
    assert "data" in refused
    assert "operation 1 (test /data/colour)" in " ".join(failed_test.replace("│", "").split())
    assert "spec.replicas: 4 -> 1" in said["setpoint_patch.a"]
    assert '[name=web].image: "web:3" -> "web:1"' in said["setpoint_patch.a"]
    assert "data.size: (none) -> (hidden)" in said["setpoint_patch.b"]
    assert 'metadata.labels.tier: "front" -> (none)' in said["setpoint_patch.c"]
    assert workspace.get("configmaps", "merged")["data"] == {"colour": MARKS[6], "size": MARKS[7]}
