"""The table of a merge: fields by name, nothing else."""

import pytest

from setpoint.core.paths import Path
from setpoint.core.threeway import EntryMap, Table, Whole, merge, remember


@pytest.mark.parametrize("path", ["items[0].name", "volumes[name=x]"])
def test_a_table_that_names_an_element_is_refused_rather_than_never_reached(path: str) -> None:
    table: Table = {Path.parse("env"): EntryMap(), Path.parse(path): Whole()}

    with pytest.raises(ValueError, match="a table names fields, not elements: "):
        remember({}, table)
    with pytest.raises(ValueError, match="a table names fields, not elements: "):
        merge(None, {}, {}, table)
