"""The credentials in a state have expired, and the configuration has new ones."""

from typing import Any, Final

import pytest

from tests.terraform.command import Diagnostic, Outcome
from tests.terraform.objects.workspace import A, B, Workspace, config_map, declared

REFUSED: Final = "The credentials in the state are refused"
CHANGED: Final = "The object was changed by another writer"
EXPIRED: Final = "an-expired-token"
WAIT: Final = """
resource "setpoint_wait" "w" {
  object_ref = { api_version = "v1", kind = "ConfigMap", name = "awaited", namespace = "NAMESPACE" }
  wait_for   = { field = "data.colour" }
  CLUSTER
}
"""


def _cluster(workspace: Workspace, token: str = "") -> str:
    """The attribute `cluster`, with a token of alice's or another one."""
    access = workspace.access
    certificate = f'cluster_ca_certificate = file("{access.certificate_authority}")'
    return f'cluster = {{ host = "{access.url}", token = "{token or access.token_of("alice")}", {certificate} }}'


def _write(workspace: Workspace, text: str) -> None:
    """Writes a configuration in which the block of the provider names no cluster."""
    workspace.write(text)
    file = workspace.folder / "main.tf"
    file.write_text(file.read_text().replace(f'cluster = {{ config_path = "{workspace.access.kubeconfig}" }}', "", 1))


def _expire(workspace: Workspace, token: str = EXPIRED) -> None:
    """From now on the token in the state is refused."""
    file = workspace.folder / "terraform.tfstate"
    file.write_text(file.read_text().replace(workspace.access.token_of("alice"), token))


def _shown(outcome: Outcome, severity: str) -> set[str]:
    return {one.summary for one in outcome.diagnostics if one.severity == severity}


def _about(outcome: Outcome, address: str, summary: str) -> Diagnostic:
    (found,) = (one for one in outcome.diagnostics if (one.address, one.summary) == (address, summary))
    return found


@pytest.fixture
def alices(workspace: Workspace) -> Workspace:
    """A workspace in whose namespace alice has all rights."""
    workspace.allow("alice")
    return workspace


def _objects(workspace: Workspace, token: str = "") -> str:
    cluster = _cluster(workspace, token)
    value = f'{cluster}\nwait_for = {{ field = "data.late" }}'
    gone = declared("gone", config_map("gone", colour="blue"), cluster)
    kept = declared("a", config_map("settings", colour="blue", size="1"), cluster) + gone
    return kept + declared("b", config_map("late", colour="blue", late="1"), value) + WAIT.replace("CLUSTER", cluster)


def test_a_plan_finds_drift_with_the_credentials_of_the_configuration_and_an_apply_stores_them(
    alices: Workspace,
) -> None:
    alices.make("configmaps", {"metadata": {"name": "awaited"}, "data": {"colour": "red"}})
    _write(alices, _objects(alices))
    alices.applied()
    uid = alices.uid("configmaps", "settings")
    _expire(alices)

    unchanged = alices.plan("-refresh-only")
    alices.edit("configmaps", "settings", {"data": {"colour": "green", "size": None}})
    alices.edit("configmaps", "awaited", {"data": {"colour": "yellow"}})
    assert alices.access.call("DELETE", alices.path("configmaps", "gone")).status == 200
    drifted = alices.plan()
    applied = alices.apply()

    assert (unchanged.drifted, _shown(unchanged, "warning"), _shown(unchanged, "error")) == ([], {REFUSED}, set())
    assert _shown(drifted, "error") == set()
    assert _shown(drifted, "warning") == {REFUSED, CHANGED, "The object is gone"}
    assert "data.colour, data.size" in _about(drifted, A, CHANGED).detail
    assert (applied.code, _shown(applied, "error")) == (0, set()), applied.diagnostics
    assert alices.get("configmaps", "settings")["data"] == {"colour": "blue", "size": "1"}
    assert alices.uid("configmaps", "settings") == uid
    assert alices.get("configmaps", "gone")["data"] == {"colour": "blue"}
    assert alices.state("setpoint_wait.w")["result"]["value"] == {"data": {"colour": "yellow"}}
    assert EXPIRED not in (alices.folder / "terraform.tfstate").read_text()
    alices.assert_no_changes()
    alices.destroyed()


def test_a_value_that_is_waited_for_and_changed_meanwhile_is_planned_as_unknown(alices: Workspace) -> None:
    late = declared("a", config_map("late", colour="blue"), 'wait_for = { field = "data.late" }\nCLUSTER')
    alices.make("configmaps", {"metadata": {"name": "late"}, "data": {"late": "1"}})
    alices.write(late.replace("CLUSTER", _cluster(alices)))
    id_ = f"apiVersion=v1,kind=ConfigMap,namespace={alices.namespace},name=late"
    assert alices.project.run("import", "-input=false", "-no-color", A, id_).code == 0
    alices.applied()
    _expire(alices)
    alices.edit("configmaps", "late", {"data": {"late": "2"}})

    _write(alices, late.replace("CLUSTER", _cluster(alices)))
    change = alices.planned()[A]
    applied = alices.project.run("apply", "-json", "-input=false", "plan")

    assert (change.unknown["status"], change.actions) == (True, ["update"])
    assert (applied.code, applied.diagnostics) == (0, [])
    assert alices.state()["status"]["value"] == {"data": {"late": "2"}}


@pytest.mark.parametrize("refused", ["expired", "forbidden"])
def test_new_credentials_that_are_refused_are_an_error_and_a_deletion_says_what_to_do(
    alices: Workspace, refused: str
) -> None:
    token = EXPIRED if refused == "expired" else alices.access.token_of("bob")
    good = declared("a", config_map("settings", colour="blue"), _cluster(alices))
    _write(alices, good)
    alices.applied()
    _expire(alices, token)
    _write(alices, declared("a", config_map("settings", colour="blue"), _cluster(alices, token)))
    planned = alices.plan()
    _write(alices, "")
    removed = alices.apply()

    assert (planned.code, _shown(planned, "warning")) == (1, {REFUSED})
    assert ("401" if refused == "expired" else "403") in _error(planned)["detail"]
    assert (removed.code, _error(removed)["summary"]) == (1, REFUSED)
    assert "terraform apply" in _error(removed)["detail"]
    assert token not in str(planned.diagnostics) + str(removed.diagnostics)
    assert alices.get("configmaps", "settings") is not None
    _write(alices, good)
    assert alices.apply().code == 0
    alices.destroyed()


def _error(outcome: Outcome) -> dict[str, Any]:
    (found,) = (one for one in outcome.diagnostics if one.severity == "error")
    return {"summary": found.summary, "detail": found.detail}


def test_the_block_of_the_provider_is_used_in_the_place_of_credentials_that_expired(alices: Workspace) -> None:
    alices.make("configmaps", {"metadata": {"name": "awaited"}, "data": {"colour": "red"}})
    own = declared("a", config_map("settings", colour="blue"), _cluster(alices))
    own += WAIT.replace("CLUSTER", _cluster(alices))
    alices.applied(own + declared("b", config_map("other", colour="blue")))
    _expire(alices)
    alices.edit("configmaps", "settings", {"data": {"colour": "green"}})

    refreshed = alices.plan("-refresh-only")
    alices.write(declared("b", config_map("other", colour="blue")))
    removed = alices.apply()

    assert (refreshed.drifted, refreshed.diagnostics) == ([A], [])
    assert (removed.code, removed.diagnostics) == (0, [])
    assert removed.actions == {A: "delete", "setpoint_wait.w": "delete"}
    assert alices.get("configmaps", "settings") is None
    assert list(alices.project.instances()) == [B]
