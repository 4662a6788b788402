"""The image, without a container engine: its instructions, and a build in a folder."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from shutil import rmtree, which
from tempfile import mkdtemp

import pytest

from setpoint import __version__
from setpoint.deployment.manifests import USER_ID
from setpoint.runtime.metrics.build import REVISION_VARIABLE
from tests.deployment.dockerfile import Instruction, build, instructions, stages
from tests.deployment.file_audit import WATCHED

TEXT = Path("Dockerfile").read_text(encoding="utf-8")
BUILD, LAST = stages(TEXT)
PIP = [one for one in BUILD.all("RUN") if "pip" in one.words]


def _ids(one: Instruction) -> str:
    return one.text


# --- Instructions -----------------------------------------------------------------------------------------------------


def test_the_last_stage_only_copies_the_environment_of_the_build_stage() -> None:
    assert (BUILD.image, LAST.image) == ("${PYTHON_IMAGE}", "${PYTHON_IMAGE}")
    assert [one.text for one in LAST.all("COPY")] == ["--from=build /opt/setpoint /opt/setpoint"]
    assert LAST.all("RUN") == []


def test_the_user_is_a_number_other_than_root() -> None:
    assert [one.text for one in LAST.all("USER")] == [f"{USER_ID}:{USER_ID}"]


def test_the_entrypoint_needs_no_shell() -> None:
    (entry,) = LAST.all("ENTRYPOINT")

    assert json.loads(entry.text) == ["/opt/setpoint/bin/setpoint"]


@pytest.mark.parametrize("one", PIP, ids=_ids)
def test_only_packages_with_a_checked_hash_are_installed(one: Instruction) -> None:
    assert "--require-hashes" in one.words or "--no-index" in one.words
    assert "--no-deps" in one.words, "the pins are the whole closure: a resolver may only break it"
    assert BUILD.environment["PIP_ONLY_BINARY"] == ":all:"


@pytest.mark.parametrize("one", BUILD.all("COPY"), ids=_ids)
def test_copied_files_exist_and_are_in_the_build_context(one: Instruction) -> None:
    for source in one.words[:-1]:
        assert Path(source).exists()
        assert not _is_left_out(source)


@pytest.mark.parametrize(
    "name", [".git/config", ".venv/bin/python", ".setpoint/state.db", "key.json", "src/setpoint/__pycache__/app.pyc"]
)
def test_the_build_context_excludes_private_files(name: str) -> None:
    assert _is_left_out(name)


def _is_left_out(name: str) -> bool:
    """Whether .dockerignore excludes it: the last matching line decides."""
    excluded = False
    for line in Path(".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!").rstrip("/")
        parts = [name, *map(str, Path(name).parents)]
        if line and not line.startswith("#") and any(_fits(part, pattern) for part in parts):
            excluded = not line.startswith("!")
    return excluded


def _fits(name: str, pattern: str) -> bool:
    deep = pattern.removeprefix("**/")
    return fnmatch(Path(name).name, deep) if deep != pattern else fnmatch(name, pattern) and "/" not in name


def test_no_build_argument_or_variable_is_a_secret() -> None:
    names = [word.partition("=")[0] for one in instructions(TEXT) if one.name in ("ARG", "ENV") for word in one.words]

    assert [name for name in names if any(word in name for word in ("TOKEN", "PASSWORD", "SECRET", "KEY"))] == []


def test_the_image_is_labelled_with_the_version() -> None:
    assert [one.text for one in LAST.all("ARG")] == [f"VERSION={__version__}", "REVISION=unknown"]
    assert 'org.opencontainers.image.version="${VERSION}"' in LAST.all("LABEL")[0].text


def test_the_image_has_the_commit_as_a_label_and_for_the_metrics() -> None:
    assert 'org.opencontainers.image.revision="${REVISION}"' in LAST.all("LABEL")[0].text
    assert LAST.environment[REVISION_VARIABLE] == "${REVISION}"


# --- Build ------------------------------------------------------------------------------------------------------------


def test_the_image_runs_as_a_user_without_write_access(root: Path) -> None:
    """One test: the build is slow."""
    build(BUILD, root)
    (packages,) = (root / "opt/setpoint/lib").glob("python*/site-packages")

    assert _as_image_user([str(root / "opt/setpoint/bin/setpoint"), "version"]) == f"setpoint {__version__}\n"
    # No file is written, everything is compiled, and no build tool is in the image.
    python = str(root / "opt/setpoint/bin/python")
    assert _as_image_user([python, "-c", WATCHED, "--help"]).startswith("Usage: setpoint")
    # By digest: nothing is warned of.
    install = ("install", "--dry-run", "--image", f"setpoint@sha256:{'0' * 64}")
    assert _as_image_user([python, "-c", WATCHED, *install]).startswith("apiVersion: apiextensions.k8s.io/v1")
    assert (packages / f"setpoint/app/__pycache__/engine.{sys.implementation.cache_tag}.pyc").exists()
    assert [name for name in ("pip", "setuptools", "hatchling") if (packages / name).exists()] == []


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that all users may read."""
    folder = Path(mkdtemp(prefix="setpoint-image-"))
    folder.chmod(0o755)
    yield folder
    rmtree(folder)


def _as_image_user(command: Sequence[str]) -> str:
    """The output as the user of the image, with read access only."""
    prefix: list[str] = []
    if os.geteuid() == 0:
        setpriv = which("setpriv")
        if setpriv is None:
            pytest.skip("there is no setpriv: root cannot become a user without write access")
        caps = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
        prefix = [setpriv, f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups", *caps]
    environment = {**LAST.environment, "HOME": "/", "PATH": "/usr/bin"}
    done = subprocess.run([*prefix, *command], cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
