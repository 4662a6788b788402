"""Docstrings below fields are the descriptions of the fields."""

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


def test_a_docstring_belongs_to_the_field_above_it() -> None:
    assert field_docs(Disk) == {"size": "In GB.", "kind": "Which one: fast or slow."}


def test_inherited_fields_have_their_docstrings() -> None:
    assert field_docs(Array) == {"size": "In GB, of each.", "kind": "Which one: fast or slow.", "count": "How many."}


def test_nested_and_local_classes_have_their_docstrings() -> None:
    class Local(Struct):
        name: str
        """Here."""

    assert field_docs(Disk.Part) == {"label": "What it is called."}
    assert field_docs(Local) == {"name": "Here."}


def test_a_class_without_source_has_no_docstrings() -> None:
    made = type("Made", (Struct,), {"__annotations__": {"size": int}, "__module__": "nowhere"})
    built_in = type("BuiltIn", (Struct,), {"__annotations__": {"size": int}, "__module__": sys.__name__})

    assert (field_docs(made), field_docs(built_in)) == ({}, {})
