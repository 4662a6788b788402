"""The page about the provider matches its schemas."""

from tests.docs.terraform_reference import PAGE, tables, written


def test_the_tables_are_those_of_the_schemas() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == written(page), "run python -m tests.docs.terraform_reference"


def test_every_attribute_has_a_description() -> None:
    assert [name for attributes in tables().values() for name, one in attributes.items() if not one.description] == []
