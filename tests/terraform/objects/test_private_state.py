"""Private state is stored with every Terraform state: its bytes stay the same from version to version."""

import base64
import json

import pytest

from setpoint.terraform.resources.object_state import PrivateState, read_private_state
from tests.terraform.objects.workspace import Workspace, config_map, declared

STORED = [
    (b"{}", PrivateState()),
    (b'{"is_pending":true,"takes":"8f3a1c2b9d04/2"}', PrivateState(is_pending=True, takes="8f3a1c2b9d04/2")),
    (b'{"adopts":"8f3a1c2b9d04/1"}', PrivateState(adopts="8f3a1c2b9d04/1")),
    (b'{"satisfied_for":"uid/3/Ready"}', PrivateState(satisfied_for="uid/3/Ready")),
    (
        b'{"engine":{"observedGeneration":1,"setpoint":{"location":"here"}},"is_pending":true}',
        PrivateState({"observedGeneration": 1, "setpoint": {"location": "here"}}, is_pending=True),
    ),
]


@pytest.mark.parametrize(("data", "state"), STORED)
def test_stored_bytes_are_decoded_and_encoded_unchanged(data: bytes, state: PrivateState) -> None:
    assert read_private_state(data) == state
    assert state.to_bytes() == data


def test_neither_the_record_of_the_last_step_nor_the_output_is_stored() -> None:
    """An earlier version stored both: they are dropped when they are read."""
    stored = (
        b'{"engine":{"output":{"state":"known","value":{"data":{"a":"1"}}},"observedGeneration":1,"setpoint":'
        b'{"location":"here","step":{"writes":[{"changes":[{"path":"data.a","after":"1"}]}]}}}}'
    )

    assert read_private_state(stored).to_bytes() == (
        b'{"engine":{"observedGeneration":1,"setpoint":{"location":"here"}}}'
    )


@pytest.mark.parametrize("data", [b"", b"no JSON", b'{"is_pending":"yes"}'])
def test_bytes_that_cannot_be_decoded_give_an_empty_state(data: bytes) -> None:
    assert read_private_state(data) == PrivateState()


def test_a_state_has_a_manifest_as_declared_and_as_the_cluster_has_it_and_no_third_time(workspace: Workspace) -> None:
    text = "0123456789" * 1480
    workspace.applied(declared("a", config_map("settings", text=f"first {text}")))
    workspace.applied(declared("a", config_map("settings", text=f"second {text}")))

    stored = (workspace.folder / "terraform.tfstate").read_text(encoding="utf-8")
    (instance,) = json.loads(stored)["resources"][0]["instances"]
    private = base64.b64decode(instance["private"])
    assert text.encode() not in private
    assert b"0123456789" not in private
    assert len(private) < 1500
    assert stored.count(text) == 2
