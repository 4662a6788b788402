"""What a release consists of: the wheel, the source distribution and the chart, and the workflow that builds them."""

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

import pytest
import yaml

from setpoint import __version__
from tests.deployment import chart

_WORKFLOW: Final = Path(".github/workflows/release.yml")


def _build(source: Path, target: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", target], cwd=source, capture_output=True, check=True
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    _build(Path.cwd(), folder)
    return folder


def test_the_wheel_has_the_data_of_the_package_and_no_test(built: Path) -> None:
    with ZipFile(built / f"setpoint-{__version__}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())

    assert {"setpoint/py.typed", "setpoint/catalogue/google/index.json", "setpoint/cli/entry.py"} <= names
    assert {name.partition("/")[0] for name in names} == {"setpoint", f"setpoint-{__version__}.dist-info"}


def test_the_source_distribution_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / f"setpoint-{__version__}.tar.gz") as source:
        source.extractall(tmp_path, filter="data")
    _build(tmp_path / f"setpoint-{__version__}", tmp_path / "again")

    name = f"setpoint-{__version__}-py3-none-any.whl"
    assert (tmp_path / "again" / name).read_bytes() == (built / name).read_bytes()


def test_the_chart_has_the_version_of_the_package(tmp_path: Path) -> None:
    packaged = chart.run("package", "--destination", str(tmp_path), "deploy/helm/setpoint")

    assert (packaged.returncode, [file.name for file in tmp_path.iterdir()]) == (0, [f"setpoint-{__version__}.tgz"])


def _steps() -> list[dict[str, Any]]:
    jobs = yaml.safe_load(_WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_the_scripts_of_the_workflow_are_valid_shell() -> None:
    scripts = [step["run"] for step in _steps() if "run" in step]
    checked = [subprocess.run(["bash", "-n", "-c", one], check=False).returncode for one in scripts]

    assert (len(checked), set(checked)) == (7, {0})


def test_the_image_is_built_with_the_version_and_the_commit_of_the_tag() -> None:
    (build,) = [step["run"] for step in _steps() if step.get("run", "").startswith("docker build ")]

    assert '--build-arg VERSION="${TAG#v}"' in build
    assert '--build-arg REVISION="$GITHUB_SHA"' in build


def test_the_workflow_runs_targets_that_exist() -> None:
    targets = [step["run"].split()[1] for step in _steps() if step.get("run", "").startswith("make ")]
    for target in targets:
        subprocess.run(["make", "--dry-run", "--silent", target], capture_output=True, check=True)

    assert targets == ["test", "dist"]
