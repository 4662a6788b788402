"""What stands below a field is its description."""

import sys

from msgspec import Struct

from setpoint.kinds.field_docs import field_docs


class Disk(Struct):
    """A disk."""

    size: int
    """In GB."""
    speed: int
    kind: str
    """Which one:
    fast or slow.
    """

    def __repr__(self) -> str:
        """No field has this."""
        return "Disk"

    class Part(Struct):
        label: str
        """What it is called."""


class Array(Disk):
    count: int
    """How many."""
    size: int
    """In GB, of each."""


def test_a_text_belongs_to_the_field_above_it() -> None:
    assert field_docs(Disk) == {"size": "In GB.", "kind": "Which one: fast or slow."}


def test_fields_of_a_base_come_with_their_texts() -> None:
    assert field_docs(Array) == {"size": "In GB, of each.", "kind": "Which one: fast or slow.", "count": "How many."}


def test_classes_in_classes_and_functions_have_theirs() -> None:
    class Local(Struct):
        name: str
        """Here."""

    assert field_docs(Disk.Part) == {"label": "What it is called."}
    assert field_docs(Local) == {"name": "Here."}


def test_without_a_source_there_is_no_text() -> None:
    made = type("Made", (Struct,), {"__annotations__": {"size": int}, "__module__": "nowhere"})
    built_in = type("BuiltIn", (Struct,), {"__annotations__": {"size": int}, "__module__": sys.__name__})

    assert (field_docs(made), field_docs(built_in)) == ({}, {})
