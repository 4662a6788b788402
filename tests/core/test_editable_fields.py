"""Editable fields are named by fields, and nothing else."""

import pytest

from setpoint.core.merge.threeway import (
    EditableFields,
    EntryMap,
    WholeValue,
    last_generated_from_data,
    last_generated_to_data,
    merge,
    remember,
)
from setpoint.core.values.paths import Path


@pytest.mark.parametrize("path", ["items[0].name", "volumes[name=x]"])
def test_an_editable_path_to_an_element_is_refused(path: str) -> None:
    table: EditableFields = {Path.parse("env"): EntryMap(), Path.parse(path): WholeValue()}

    with pytest.raises(ValueError, match="a table names fields, not elements: "):
        remember({}, table)
    with pytest.raises(ValueError, match="a table names fields, not elements: "):
        merge(None, {}, {}, table)


def test_last_generated_survives_its_json_form_and_other_data_is_none() -> None:
    table: EditableFields = {Path.parse("env"): EntryMap()}
    memory = remember({"env": {"A": "1"}, "zone": "a"}, table)

    assert last_generated_from_data(last_generated_to_data(memory)) == memory
    assert last_generated_from_data({"version": "v1", "digests": {"env": {"A": "not a digest"}}}) is None
    assert last_generated_from_data({"version": "v1", "digests": {1: "x"}}) is None
    assert last_generated_from_data({"version": "v0"}) is None
