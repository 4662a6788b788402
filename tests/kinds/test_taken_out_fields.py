"""What becomes of fields that an author takes out again, or that a creation fixes: on a local cloud, with an engine."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.catalogue.index import kinds_by_group
from setpoint.core.filled_fields import MAX_MARKS, filled_marks, path_mark
from setpoint.core.overlay import Declared
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import shape_of
from setpoint.core.values.paths import Path
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.errors import ImmutableFieldChanged
from setpoint.kinds.gcp.generic.spec_types import tree_type_of
from setpoint.testing import contract_harness
from tests.catalogue_kinds.fixtures import fixture_of
from tests.kinds.test_catalogue_requests import row_of

OUTLIERS = {"outlierDetection": {"consecutiveErrors": 3}}
SCALED = {"autoscaling": {"minNodeCount": 1, "maxNodeCount": 3}}


def declared_one_after_another(kind: str, *specs: Mapping[str, Any]) -> tuple[list[Any], StepOutcome]:
    """The bodies of what was written for the last spec, and how its last step ended."""

    async def declared() -> tuple[list[Any], StepOutcome]:
        fixture = fixture_of(next(name for name in kinds_by_group() if name[1] == kind))()
        async with contract_harness(fixture) as harness:
            for spec in specs[:-1]:
                await harness.apply({**fixture.minimal, **spec})
                await harness.go_on()
            written = len(fixture.cloud.written)
            await harness.apply({**fixture.minimal, **specs[-1]})
            outcome = await harness.go_on()
            return fixture.cloud.written[written:], outcome

    return asyncio.run(declared())


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        # Not reset to an object of defaults, with which outliers would still be detected.
        ("ComputeBackendService", OUTLIERS, {"outlierDetection": None}),
        # A null would be no request at all.
        ("ContainerNodePool", SCALED, {"autoscaling": {"enabled": False}}),
        ("ComputeSecurityPolicy", {"description": "d"}, {}),
    ],
)
def test_what_is_taken_out_is_unset_or_switched_off(kind: str, spec: dict[str, Any], expected: dict[str, Any]) -> None:
    (sent,), outcome = declared_one_after_another(kind, spec, {})

    assert isinstance(outcome, Settled)
    assert {name: one for name, one in sent.items() if name not in ("fingerprint", "labels")} == expected


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ContainerCluster", {"loggingService": "none"}),
        ("ContainerNodePool", {"nodeCount": 3}),
        ("RedisInstance", {"redisVersion": "REDIS_6_X"}),
        ("MemcacheInstance", {"memcacheVersion": "MEMCACHE_1_6_15"}),
        ("ComputeInstance", {"desiredStatus": "RUNNING"}),
    ],
)
def test_what_no_method_unsets_is_kept(kind: str, spec: dict[str, Any]) -> None:
    sent, outcome = declared_one_after_another(kind, spec, {})

    assert isinstance(outcome, Settled)
    assert sent == []


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("ContainerCluster", {"initialNodeCount": 1}, {"initialNodeCount": 2}),
        (
            "AlloyDBCluster",
            {"restoreBackupSource": {"backupNameRef": {"external": "projects/p/locations/l/backups/b"}}},
            {"restoreBackupSource": {"backupNameRef": {"external": "projects/p/locations/l/backups/c"}}},
        ),
    ],
)
def test_what_a_creation_takes_and_never_tells_is_fixed(kind: str, before: Any, after: Any) -> None:
    sent, outcome = declared_one_after_another(kind, before, after)

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ImmutableFieldChanged)
    assert sent == []


def test_another_version_of_the_control_plane_is_asked_for_once() -> None:
    older, newer = {"minMasterVersion": "1.29"}, {"minMasterVersion": "1.30"}

    assert declared_one_after_another("ContainerCluster", older, newer)[0] == [
        {"update": {"desiredMasterVersion": "1.30"}}
    ]
    assert declared_one_after_another("ContainerCluster", older, newer, {**newer, "loggingService": "none"})[0] == [
        {"update": {"desiredLoggingService": "none"}}
    ]


@given(st.integers(MAX_MARKS, 2 * MAX_MARKS))
def test_of_many_fields_the_outer_ones_are_kept_in_mind(count: int) -> None:
    tiles: Any = [{"widget": {"title": "t"}, "height": 1} for _ in range(count)]
    spec: Any = {"dashboardFilters": [], "mosaicLayout": {"columns": 12, "tiles": tiles}, "rowLayout": {"rows": []}}

    marks = filled_marks(Declared({"spec": spec}, shape_of(tree_type_of(row_of("MonitoringDashboard"))), FieldPolicy()))

    assert len(marks) == MAX_MARKS
    assert {path_mark(Path(("spec", name))) for name in spec} <= {*marks}
