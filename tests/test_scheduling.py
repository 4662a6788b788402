"""Tests are handed out by folder or file, and tests on a cluster are spread among all other tests."""

from typing import Any

import pytest

from tests.scheduling import mixed, unit_of


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/core/test_paths.py::test_a[x::y]", "tests/core/test_paths.py"),
        ("tests/stores/test_contract.py::TestApplying::test_a", "tests/stores/test_contract.py"),
        ("tests/stores/kubernetes/test_leases.py::test_a", "tests/stores/kubernetes/"),
        ("tests/cluster/trustee/test_lifecycle.py::test_a", "tests/cluster/trustee/"),
        ("tests/cluster/outages/test_client.py::test_a", "tests/cluster/outages/"),
    ],
)
def test_a_unit_is_a_file_or_a_folder_whose_tests_share_a_server(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


@pytest.mark.parametrize(
    ("on_cluster", "without_cluster", "order"),
    [
        ("", "", ""),
        ("ab", "", "ab"),
        ("", "123", "123"),
        ("a", "1234", "a1234"),
        ("ab", "12345678", "a12b345678"),
        ("abcd", "1234", "ab1cd234"),
    ],
)
def test_units_on_a_cluster_are_spread_over_the_first_half_of_all_other_units(
    on_cluster: str, without_cluster: str, order: str
) -> None:
    some: Any = [[letter] for letter in on_cluster]
    rest: Any = [[letter] for letter in without_cluster]

    assert "".join(str(unit[0]) for unit in mixed(some, rest)) == order
