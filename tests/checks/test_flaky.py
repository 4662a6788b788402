import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
# Fails in the first run, and passes in the second.
_TESTS = """
import pathlib
import pytest

def _is_second(name):
    file = pathlib.Path(name)
    known = file.exists()
    file.touch()
    return known

def test_passes(): pass
def test_flaky(): assert _is_second("flaky")
@pytest.fixture
def shaky(): assert _is_second("shaky")
def test_shaky_fixture(shaky): pass
@pytest.fixture
def untidy():
    yield
    raise RuntimeError
def test_untidy(untidy): pass
def test_wrong(): assert False
@pytest.mark.laws
def test_law(): assert _is_second("law")
@pytest.mark.parametrize("number", range(6))
def test_many(number): assert _is_second(f"many-{number}")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['laws']\n", encoding="utf-8")
    (tmp_path / "test_it.py").write_text(_TESTS, encoding="utf-8")
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", encoding="utf-8")
    (plugin / "test_plugin.py").write_text(_TESTS, encoding="utf-8")
    return tmp_path


def _run(project: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    # Without the variables by which pytest-xdist tells its own processes.
    environment = {"PYTHONPATH": str(_ROOT), "PATH": ""}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def _verdicts(project: Path, *names: str) -> tuple[int, list[str]]:
    """The exit code, and the lines about tests, after a run of these tests."""
    tests = [name if "::" in name else f"test_it.py::{name}" for name in names]
    assert _run(project, "pytest", "--rootdir", ".", *tests).returncode == 1
    done = _run(project, "checks.flaky")
    return done.returncode, [
        line for line in done.stdout.splitlines() if line.startswith(("FLAKY", "FAILED: ", "flaky"))
    ]


def test_a_test_that_passes_alone_is_named_and_does_not_fail_the_run(project: Path) -> None:
    code, lines = _verdicts(project, "test_flaky", "test_shaky_fixture", "test_passes")

    assert code == 0
    assert lines == [
        "FLAKY: test_it.py::test_flaky: failed beside other tests, and passed alone",
        "FLAKY: test_it.py::test_shaky_fixture: failed beside other tests, and passed alone",
    ]


def test_tests_of_a_folder_with_a_project_of_its_own_are_found_again(project: Path) -> None:
    code, lines = _verdicts(project, "plugin/test_plugin.py::test_flaky")

    assert code == 0
    assert lines == ["FLAKY: plugin/test_plugin.py::test_flaky: failed beside other tests, and passed alone"]


@pytest.mark.parametrize("name", ["test_wrong", "test_law", "test_untidy"])
def test_a_test_that_fails_again_or_is_a_law_fails_the_run(name: str, project: Path) -> None:
    code, lines = _verdicts(project, "test_flaky", name)

    assert code == 1
    assert f"FAILED: test_it.py::{name}" in lines


def test_many_failures_are_not_run_again(project: Path) -> None:
    assert _verdicts(project, "test_many") == (1, ["flaky: 6 tests failed; none is run again"])
