"""Which tests run in the same process, and in which order: a plugin of pytest, for pytest-xdist."""

import gc
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import pytest

from tests.cluster.fixtures import NEEDS_CLUSTER, has_programs

# Tests that share a fixture that takes long to start, by the beginning of their path. All other tests are handed out
# file by file. The tests of tests/cluster/trustee are two units: as one they would be the last to end.
_TOGETHER: Final = tuple(
    map(
        re.compile,
        (
            "tests/cluster/outages/",
            "tests/cluster/trustee/test_[a-e]",
            "tests/cluster/trustee/",
            "tests/stores/kubernetes/",
            # One browser for all of them.
            "tests/dashboard/browser/",
            # Each with a server of its own: the contract of two to four kinds each, and all other tests of the plug-in.
            "plugins/setpoint-postgresql/tests/test_lifecycle_of_servers",
            "plugins/setpoint-postgresql/tests/test_lifecycle_of_databases",
            "plugins/setpoint-postgresql/tests/test_lifecycle_of_privileges",
            "plugins/setpoint-postgresql/tests/test_lifecycle_of_(?:functions|replication)",
            "plugins/setpoint-postgresql/tests/",
        ),
    )
)
Unit: TypeAlias = Sequence[pytest.Item]
# So many more objects are made than freed before the garbage collector looks at them. Python's own 700 are few: the
# collection of the tests makes hundreds of thousands that stay. Fewer than what `setpoint run` sets, which is tested.
_NEW_OBJECTS: Final = 5_000
# Tests of clusters and of commands mostly wait for other processes, so two workers share a core.
_PROCESSES_PER_CORE: Final = 2


def pytest_configure() -> None:
    """The garbage collector runs less often."""
    gc.set_threshold(_NEW_OBJECTS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """The number of workers for `-n auto`."""
    return _PROCESSES_PER_CORE * len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hands out whole units in the order of the collection, unless another `--dist` is set."""
    from xdist.scheduler import LoadScopeScheduling

    if config.getoption("dist") != "load":
        return None
    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = unit_of
    return scheduler


def unit_of(nodeid: str) -> str:
    """The tests that run in one worker, one after the other: those of a file, or those that share a fixture."""
    file = nodeid.partition("::")[0]
    return next((pattern.pattern for pattern in _TOGETHER if pattern.match(file)), file)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mixes tests on a cluster with all other tests; where the API server has yet to be built, they stay the last."""
    if not hasattr(config, "workerinput"):
        return
    # The longest units start first, so that none of them is the last to end.
    waiting, other_units = (sorted(units, key=_is_short) for units in parted(items))
    order = mixed(waiting, other_units) if has_programs(config) else [*other_units, *waiting]
    items[:] = [item for unit in order for item in unit]


def parted(items: Iterable[pytest.Item]) -> tuple[list[Unit], list[Unit]]:
    """The units, in the order of their first tests: those with a test on a cluster, and the others.

    A unit is handed out as a whole: one such test in it would have its worker wait until the API server is built.
    """
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        units.setdefault(unit_of(item.nodeid), []).append(item)
    waiting: list[Unit] = [unit for unit in units.values() if _needs_cluster(unit)]
    return waiting, [unit for unit in units.values() if not _needs_cluster(unit)]


def pytest_collection_finish() -> None:
    """Test items live as long as the process: the garbage collector need not visit them again and again."""
    gc.freeze()


def _is_short(unit: Unit) -> bool:
    return not any(pattern.match(unit[0].nodeid) for pattern in _TOGETHER)


def _needs_cluster(unit: Unit) -> bool:
    return any(item.get_closest_marker(NEEDS_CLUSTER) is not None for item in unit)


def mixed(some: Sequence[Unit], other_units: Sequence[Unit]) -> Iterator[Unit]:
    """Both in their order: `some` is spread evenly over the first half of `other_units`, so that none is the last."""
    share = len(other_units) / (2 * len(some)) if some else 0
    begun = 0
    for number, unit in enumerate(some, start=1):
        yield unit
        yield from other_units[begun : int(number * share)]
        begun = int(number * share)
    yield from other_units[begun:]
