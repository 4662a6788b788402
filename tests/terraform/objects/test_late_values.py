"""A value that comes after its wait has timed out: the next read has it, whatever is planned."""

from tests.terraform.command import Outcome
from tests.terraform.objects.waits import BOTH, LONG_WAIT, TIMEOUT, address_known, service, timed_out
from tests.terraform.objects.workspace import A, B, Workspace

STATUS = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
OUTPUT = f'output "address" {{ value = {A}.status }}\n'


def _refresh(workspace: Workspace) -> Outcome:
    outcome = workspace.project.run("refresh", "-json", "-input=false")
    assert outcome.code == 0, outcome.diagnostics
    return outcome


def test_a_read_after_the_timeout_of_a_create_has_the_status_and_keeps_the_object(workspace: Workspace) -> None:
    uid = timed_out(workspace, BOTH + OUTPUT)
    _refresh(workspace)
    assert workspace.state()["status"] is None

    workspace.give_address("web", "192.0.2.1")
    seen = workspace.plan("-refresh-only")
    assert (seen.code, seen.drifted) == (2, [A])
    _refresh(workspace)

    assert workspace.state()["status"]["value"] == STATUS
    # Terraform calls it a replacement, and it is none.
    assert workspace.plan().actions == {A: "replace", B: "create"}
    assert workspace.apply().code == 0
    workspace.assert_no_changes()
    assert (workspace.uid("services", "web"), address_known(workspace)) == (uid, "192.0.2.1")


def test_a_read_after_the_timeout_of_an_update_has_the_status_and_unblocks_the_dependants(workspace: Workspace) -> None:
    workspace.applied(service(more=""))
    timed_out(workspace, BOTH.replace("port: 80", "port: 81"))
    assert workspace.plan().actions == {A: "update", B: "create"}

    workspace.give_address("web", "192.0.2.1")
    assert workspace.plan().actions == {B: "create"}
    _refresh(workspace)

    assert workspace.state()["status"]["value"] == STATUS
    workspace.applied()
    assert address_known(workspace) == "192.0.2.1"


def test_a_value_that_disappears_and_comes_back_needs_no_apply(workspace: Workspace) -> None:
    workspace.write(service(more=LONG_WAIT))
    with workspace.meanwhile("services", "web", lambda: workspace.give_address("web", "192.0.2.1")):
        workspace.applied()
    workspace.give_address("web", None)
    _refresh(workspace)
    assert workspace.plan().actions == {A: "update"}

    workspace.give_address("web", "192.0.2.1")
    workspace.assert_no_changes()
    assert TIMEOUT not in str(workspace.state()["wait_for"])
