"""A version that is given to `verify-upgrade` never runs a program from a folder that happens to have its name."""

import sys
from pathlib import Path

import pytest

from setpoint.cli.upgrade_interpreters import VersionInterpreter, find_interpreter
from setpoint.errors import UserError

VERSIONS = ["1.2.3", "0.2", "7", "v1.2.3", "1.2.3rc1", "1.0-rc.1", "1.2.3.dev4", "1!2.0", "1.2+ours", "1.0-1", " 1.2.3"]


def make_environment(folder: Path) -> Path:
    """A folder that looks like a virtual environment."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return python


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bare_version_is_no_local_folder(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_environment(tmp_path / version)
    monkeypatch.chdir(tmp_path)

    assert find_interpreter(version, Path("environments")) is None
    with pytest.raises(UserError, match="neither a virtual environment nor a version"):
        VersionInterpreter.of(version, Path("environments"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_path_to_a_folder_is_one_whatever_its_name(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make_environment(tmp_path / version)
    monkeypatch.chdir(tmp_path)

    for word in (f"./{version}", str(tmp_path / version)):
        assert find_interpreter(word, Path("environments")) == str(python)


def test_a_bare_version_is_found_among_the_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = make_environment(tmp_path / "environments" / "1.2.3")
    make_environment(tmp_path / "1.2.3")
    monkeypatch.chdir(tmp_path)

    assert find_interpreter("1.2.3", Path("environments")) == str(python)


@pytest.mark.parametrize("name", ["venv", "3.11-env", "before", "1.2.3/"])
def test_another_name_still_means_a_local_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = make_environment(tmp_path / name)
    monkeypatch.chdir(tmp_path)

    assert find_interpreter(name, Path("environments")) == str(python)
