"""Objects that look unchanged: what is done without a dry run is what a dry run would have shown."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.access import Access
from tests.terraform.objects.manifests import CUSTOM, DEFINITION
from tests.terraform.objects.workspace import A, Workspace, config_map, declared

MADE_AGAIN = "The object was made again by another writer"


def _without_server_fields(live: dict[str, Any]) -> dict[str, Any]:
    kept = {name: live["metadata"][name] for name in ("name", "annotations", "labels") if name in live["metadata"]}
    return {**live, "metadata": kept}


@pytest.mark.parametrize("is_marked", [True, False])
def test_an_object_that_was_made_again_with_the_same_content_is_not_taken_for_the_old_one(
    workspace: Workspace, is_marked: bool
) -> None:
    workspace.applied(declared("a", config_map("one", a="b")))
    copy = _without_server_fields(workspace.get("configmaps", "one"))
    if not is_marked:
        copy["metadata"].pop("annotations")
    assert workspace.access.call("DELETE", workspace.path("configmaps", "one")).status == 200
    workspace.make("configmaps", copy)

    outcome = workspace.plan()

    # With its ID it is this resource's, though none of its fields is; without, it is another writer's.
    assert (outcome.code, outcome.actions) == (2, {A: "update"})
    assert [one.summary for one in outcome.diagnostics] == ([] if is_marked else [MADE_AGAIN])


def test_an_object_whose_fields_another_manager_applies_as_well_is_put_to_a_dry_run(workspace: Workspace) -> None:
    workspace.applied(declared("a", config_map("one", a="b")))
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "theirs"}}
    workspace.declare("configmaps", "one", theirs, "another-tool")

    summary, detail = workspace.refused()

    assert (summary, "another-tool" in detail) == ("Held by others", True), detail


def test_a_value_that_another_writer_puts_back_is_shown_as_it_is(workspace: Workspace) -> None:
    workspace.applied(declared("a", config_map("one", a="b")))
    workspace.edit("configmaps", "one", {"data": {"a": "drifted"}})
    outcome = workspace.project.run("apply", "-refresh-only", "-auto-approve", "-json", "-input=false")
    assert (outcome.code, workspace.state()["projection"]) == (0, {"data.a": "drifted"})
    workspace.edit("configmaps", "one", {"data": {"a": "b"}})
    changes = workspace.planned()

    # It is another field manager's by now, and becomes ours again.
    assert {address: one.actions for address, one in changes.items()} == {A: ["update"]}
    workspace.apply_planned()
    assert workspace.state()["projection"] == {"data.a": "b"}


def test_a_state_of_another_version_is_compared_by_the_engine(workspace: Workspace) -> None:
    workspace.applied(declared("a", config_map("one", a="b")))
    file = workspace.folder / "terraform.tfstate"
    state = json.loads(file.read_text())
    (instance,) = state["resources"][0]["instances"]
    assert instance["private"]
    instance.pop("private")
    file.write_text(json.dumps(state))

    workspace.assert_no_changes()


def test_a_kind_that_is_served_under_another_name_is_looked_up_again(workspace: Workspace) -> None:
    group = f"{workspace.namespace}.example.com"
    definition = DEFINITION.replace("GROUP", group)
    workspace.define(definition)
    workspace.applied(declared("a", CUSTOM.replace("GROUP", group)))
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/records.{group}"
    assert workspace.access.call("DELETE", path).status == 200
    workspace.define(definition.replace("records", "entries").replace("singular: record", "singular: entry"))

    changes = workspace.planned()

    assert {address: one.actions for address, one in changes.items()} == {A: ["create"]}
    workspace.apply_planned()
    assert workspace.access.call("GET", f"/apis/{group}/v1/namespaces/{workspace.namespace}/entries/www").status == 200


# Creates an object, or reads and plans the one of the file; prints what was loaded of the engine.
_SCRIPT: Final = """
import asyncio, pickle, sys
from pathlib import Path
from setpoint.terraform.connections.clusters import ClusterConnections
from setpoint.terraform.cty.values import UNKNOWN
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.provider import CreateRequest, PlanRequest
from setpoint.terraform.resources.object_resource import ObjectResource
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA

file, body = Path(sys.argv[1]), sys.argv[2]
config = {**dict.fromkeys(OBJECT_SCHEMA.attributes), "yaml_body": body}
clusters, call = ClusterConnections(), CallContext()
resource = ObjectResource(clusters)

async def create():
    proposed = {**config, **dict.fromkeys(("id", "object_ref", "projection", "fields", "status"), UNKNOWN)}
    planned = await resource.plan(PlanRequest(config, None, proposed), call)
    return await resource.create(CreateRequest(config, planned.state, planned.private), call)

async def plan():
    found = await resource.read(pickle.loads(file.read_bytes()), call)
    planned = await resource.plan(PlanRequest(config, found.state, found.state, found.private), call)
    assert planned.state == found.state
    return found

async def main():
    found = await (plan() if file.exists() else create())
    file.write_bytes(pickle.dumps(found))
    await clusters.client(None)[0].close()

asyncio.run(main())
print(*(name for name in ("setpoint.objects.session", "setpoint.engine.step.reconcile") if name in sys.modules))
"""


def test_a_plan_of_an_unchanged_object_loads_no_engine(api_server: Access, namespace: str, tmp_path: Path) -> None:
    environment = {**os.environ, "KUBECONFIG": str(api_server.kubeconfig), "XDG_CACHE_HOME": str(tmp_path)}

    def loaded(body: str) -> list[str]:
        command = [sys.executable, "-c", _SCRIPT, str(tmp_path / "state"), body.replace("NAMESPACE", namespace)]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()

    assert len(loaded(config_map("one", a="b"))) == 2
    assert loaded(config_map("one", a="b")) == []
