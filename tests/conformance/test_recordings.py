"""Recorded traffic of Config Connector, replayed against the real command where the recordings are available."""

from pathlib import Path

import pytest

from tests.conformance.flawed_recordings import FLAWED, write_corrected
from tests.conformance.instance_shapes import MYSQL, SHAPES, instance
from tests.conformance.recording import write_recording
from tests.conformance.replay_all import RECORDINGS, launcher, replayed
from tests.conformance.sql_service import SqlService
from tests.conformance.test_upstream_others import IN_SECRET, user
from tests.conformance.two_controllers import Shape, written_by_setpoint
from tests.conformance.wire import Wire

FIXTURES = sorted(path for path in (RECORDINGS / "fixtures").glob("*") if path.is_dir())

# The recordings of kinds of the catalogue that are reproduced. The list only grows.
# Those that are not are in flawed_recordings.py, each with the reason.
CATALOGUED = (Path(__file__).parent / "catalogued_recordings.txt").read_text(encoding="utf-8").split()

# Enough for one that passes; one that fails may wait for something that never comes.
_FOR_FAILURES = 30


@pytest.mark.skipif(not FIXTURES, reason="no recordings beside the project, in ../shared/conformance")
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_a_recording_is_reproduced_write_by_write(fixture: Path, setpoint: Path) -> None:
    report = replayed(fixture, setpoint=setpoint)

    assert report[-1:] == ["1 passed, 0 failed"], report


@pytest.mark.skipif(not (RECORDINGS / "google").is_dir(), reason="no recordings beside the project")
def test_recordings_of_kinds_of_the_catalogue_are_reproduced(setpoint: Path) -> None:
    # All at once: most of the time they wait for operations.
    report = replayed(*(RECORDINGS / "google" / name for name in CATALOGUED), setpoint=setpoint)

    assert report[-1:] == [f"{len(CATALOGUED)} passed, 0 failed"], [line for line in report if line[:2] != "ok"]


@pytest.mark.skipif(not (RECORDINGS / "google").is_dir(), reason="no recordings beside the project")
def test_every_recording_passes_or_has_a_flaw_that_is_told() -> None:
    recorded = {path.name for path in (RECORDINGS / "google").iterdir() if path.is_dir()}

    assert recorded == {*CATALOGUED, *FLAWED}
    assert not FLAWED.keys() & set(CATALOGUED)


@pytest.mark.skipif(not (RECORDINGS / "google").is_dir(), reason="no recordings beside the project")
def test_a_recording_with_a_flaw_fails_and_the_corrected_one_passes(setpoint: Path, tmp_path: Path) -> None:
    corrected = [write_corrected(RECORDINGS / "google" / name, tmp_path) for name in FLAWED]

    report = replayed(*corrected, setpoint=setpoint)
    flawed = replayed(*(RECORDINGS / "google" / name for name in FLAWED), setpoint=setpoint, seconds=_FOR_FAILURES)

    assert report[-1:] == [f"{len(FLAWED)} passed, 0 failed"], [line for line in report if line[:2] != "ok"]
    assert flawed[-1:] == [f"0 passed, {len(FLAWED)} failed"], flawed


@pytest.fixture(scope="module")
def setpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program under test."""
    return launcher(tmp_path_factory.mktemp("program"))


# One each for the responses that decide about a write and are blanked out.
OURS = {
    "an instance with a root password": SHAPES["mysql-direct, with a root password"],
    "instances that name each other": SHAPES["replicationcluster-direct"],
    "a user from anywhere": Shape(
        user(host="%", password=IN_SECRET), None, (instance(MYSQL, {}, "main"),), {"login": "Pa55-word"}
    ),
}


@pytest.mark.skipif(not FIXTURES, reason="no recordings beside the project, in ../shared/conformance")
@pytest.mark.parametrize("name", OURS)
def test_our_own_recording_is_reproduced_too(name: str, setpoint: Path, tmp_path: Path) -> None:
    wire = Wire(SqlService().answer)
    written_by_setpoint(OURS[name], wire)
    write_recording(tmp_path / "fixture", OURS[name], wire)

    report = replayed(tmp_path / "fixture", setpoint=setpoint)

    assert report[-1:] == ["1 passed, 0 failed"], report
