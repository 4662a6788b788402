"""An object that was deleted and made again by another writer is not deleted: by its uid and its ID annotation."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.core.values.json_types import Json
from setpoint.errors import ManagementConflict, SetpointError
from setpoint.objects.session import ClusterSession, ObjectSession
from tests.cluster.access import Access
from tests.terraform.command import Diagnostic, Outcome
from tests.terraform.objects.workspace import Workspace, config_map, declared

ANNOTATION = "setpoint.dev/terraform-id"
MADE_AGAIN = "The object was made again by another writer"
NAMES = ("remade", "marked", "unmarked", "old-remade", "old-marked")


def _make_again(workspace: Workspace, name: str, *, is_marked: bool = False) -> str:
    """Another writer deletes a ConfigMap and makes one of its name; the uid of that one."""
    before = workspace.get("configmaps", name)
    annotations = before["metadata"]["annotations"] if is_marked else {"theirs": "yes"}
    assert workspace.access.call("DELETE", workspace.path("configmaps", name)).status == 200
    workspace.make("configmaps", {"metadata": {"name": name, "annotations": annotations}, "data": before["data"]})
    return workspace.uid("configmaps", name)


def _forget_uids(workspace: Workspace, label: str) -> None:
    """The state of one resource as an earlier version has written it."""
    file = workspace.folder / "terraform.tfstate"
    state = json.loads(file.read_text())
    for one in state["resources"]:
        if one["name"] == label:
            private = json.loads(base64.b64decode(one["instances"][0]["private"]))
            private.pop("uid", None)
            private["engine"].pop("object")
            one["instances"][0]["private"] = base64.b64encode(json.dumps(private).encode()).decode()
    file.write_text(json.dumps(state))


def _warnings(outcome: Outcome) -> list[Diagnostic]:
    assert outcome.code == 0, outcome.diagnostics
    assert {one.summary for one in outcome.diagnostics} <= {MADE_AGAIN}
    return outcome.diagnostics


def _changed(workspace: Workspace) -> dict[str, str]:
    """What other writers do; the uids of the objects that they made."""
    theirs = {name: _make_again(workspace, name) for name in ("remade", "old-remade")}
    for name in ("marked", "old-marked"):
        _make_again(workspace, name, is_marked=True)
    workspace.edit("configmaps", "unmarked", {"metadata": {"annotations": {ANNOTATION: None}}})
    return theirs


def _assert_only_theirs_are_left(workspace: Workspace, outcome: Outcome, theirs: dict[str, str]) -> None:
    shown = _warnings(outcome)
    assert len(shown) == len(theirs)
    assert all("is left as it is" in one.detail and "import it" in one.detail for one in shown)
    assert workspace.project.instances() == {}
    left = {name: workspace.get("configmaps", name) for name in NAMES}
    assert {name: one["metadata"]["uid"] for name, one in left.items() if one is not None} == theirs


def test_a_destroy_lets_go_of_what_another_writer_made_and_deletes_the_rest(workspace: Workspace) -> None:
    config = "".join(declared(name, config_map(name, colour="blue")) for name in NAMES)
    for is_planned_first in (False, True):
        workspace.applied(config)
        for name in ("old-remade", "old-marked"):
            _forget_uids(workspace, name)
        if is_planned_first:
            assert workspace.plan("-destroy", "-out=plan").code == 2
        theirs = _changed(workspace)
        outcome = workspace.project.run("apply", "-json", "plan") if is_planned_first else workspace.project.destroy()

        _assert_only_theirs_are_left(workspace, outcome, theirs)
        for name in theirs:
            workspace.access.call("DELETE", workspace.path("configmaps", name))


def test_a_replacement_and_an_update_leave_what_another_writer_made(workspace: Workspace) -> None:
    names = ("replaced", "renamed", "updated")
    text = "".join(declared(name, config_map(name, colour="blue")) for name in names[:2])
    workspace.applied(text + declared("updated", config_map("updated", colour="blue")))
    changed = text.replace("name: renamed", "name: another") + declared("updated", config_map("updated", colour="red"))
    changes = workspace.planned(changed, "-replace=setpoint_object.replaced")
    assert {address.rpartition(".")[2]: one.actions for address, one in changes.items()} == {
        "replaced": ["delete", "create"],
        "renamed": ["delete", "create"],
        "updated": ["update"],
    }
    theirs = {name: _make_again(workspace, name) for name in names}
    outcome = workspace.project.run("apply", "-json", "plan")

    shown = [(one.severity, one.summary, one.address.rpartition(".")[2]) for one in outcome.diagnostics]
    assert sorted(shown) == [
        ("error", "The object is there already", "replaced"),
        ("error", "The object is there already", "updated"),
        ("warning", MADE_AGAIN, ""),
        ("warning", MADE_AGAIN, ""),
    ]
    assert {name: workspace.uid("configmaps", name) for name in names} == theirs
    assert workspace.get("configmaps", "updated")["data"] == {"colour": "blue"}
    assert workspace.get("configmaps", "another")["data"] == {"colour": "blue"}


@asynccontextmanager
async def _session(access: Access, namespace: str) -> AsyncIterator[ObjectSession]:
    metadata = {"name": "settings", "namespace": namespace}
    manifest: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": "red"}}
    cluster = ClusterSession.at(connection_from_files([access.kubeconfig]))
    try:
        yield ObjectSession(cluster, "tf-a", {"manifest": manifest})
    finally:
        await cluster.clusters.close()
        await cluster.client.close()


def test_what_is_made_between_a_look_and_a_write_is_neither_deleted_nor_updated(
    api_server: Access, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    theirs = {"metadata": {"name": "settings"}, "data": {"colour": "theirs"}}

    async def write(*, is_deletion: bool) -> SetpointError | None:
        api_server.call("POST", path, {"metadata": {"name": "settings"}})
        async with _session(api_server, namespace) as session:
            await session.observe()
            session.pin()
            api_server.call("DELETE", f"{path}/settings")
            api_server.call("POST", path, theirs)
            return await (session.delete(60) if is_deletion else session.reconcile(60))

    deleted, updated = asyncio.run(write(is_deletion=True)), asyncio.run(write(is_deletion=False))

    assert deleted is None
    assert isinstance(updated, ManagementConflict)
    assert "made again by another writer" in str(updated)
    assert api_server.call("GET", f"{path}/settings").body["data"] == {"colour": "theirs"}
