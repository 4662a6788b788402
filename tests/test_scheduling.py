"""Tests are handed out by folder or file, and tests on a cluster are spread among all other tests."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster.fixtures import NEEDS_CLUSTER
from tests.scheduling import mixed, parted, unit_of


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


@dataclass(frozen=True, slots=True)
class CollectedTest:
    """As much of an item of pytest as a unit is made from."""

    nodeid: str
    is_on_cluster: bool = False

    def get_closest_marker(self, name: str) -> object | None:
        return object() if self.is_on_cluster and name == NEEDS_CLUSTER else None


def test_one_test_on_a_cluster_keeps_its_whole_unit_among_those_that_wait_for_the_api_server() -> None:
    mixed_unit = (
        CollectedTest("tests/benchmarks/test_a.py::test_b"),
        CollectedTest("tests/benchmarks/test_a.py::test_c", True),
    )
    other_unit = CollectedTest("tests/core/test_b.py::test_a"), CollectedTest("tests/core/test_b.py::test_b")
    # As the plugin of the cluster sorts them: all tests on a cluster are the last.
    items: Any = [mixed_unit[0], *other_unit, mixed_unit[1]]

    waiting: Any = [[*mixed_unit]]
    others: Any = [[*other_unit]]
    assert parted(items) == (waiting, others)
