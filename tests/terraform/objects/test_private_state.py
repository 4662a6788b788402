"""Private state is stored with every Terraform state: its bytes stay the same from version to version."""

import pytest

from setpoint.terraform.resources.object_state import PrivateState, read_private_state

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
