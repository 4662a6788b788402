"""The page on embedding: its examples print what it says, and are typed as strictly as our own code."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import setpoint
from tests.docs.test_docs import FENCE
from tests.library.worlds import environment_for
from tests.localcloud.process import cloud_process

PAGE: Final = Path("docs/how-to/embed-the-engine.md").absolute()
ROOT: Final = PAGE.parents[2]

pytestmark = pytest.mark.slow


def fences() -> list[tuple[str, str]]:
    """The language and text of each block."""
    return FENCE.findall(PAGE.read_text(encoding="utf-8"))


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty working folder, and an environment that leads to a local cloud."""
    with cloud_process() as address:
        for name, text in environment_for(address).items():
            monkeypatch.setenv(name, text)
        monkeypatch.chdir(tmp_path)
        yield


@pytest.mark.usefixtures("cloud")
def test_the_examples_print_the_output_on_the_page() -> None:
    printed, names = io.StringIO(), dict[str, object](__name__="example")
    for language, body in fences():
        if language == "python":
            with contextlib.redirect_stdout(printed):
                exec(compile(body, str(PAGE), "exec"), names)

    assert printed.getvalue() == "".join(body for language, body in fences() if language == "")


def test_the_examples_are_typed(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text("\n".join(body for language, body in fences() if language == "python"), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", str(file)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=dict(os.environ), check=False)

    assert (done.returncode, done.stdout) == (0, "Success: no issues found in 1 source file\n")


def test_the_page_names_every_method_of_a_session() -> None:
    methods = [name for name in vars(setpoint.Session) if not name.startswith("_")]
    beside = {"close", "reading", "preview_deletion", "is_running"}

    page = PAGE.read_text(encoding="utf-8")

    assert [name for name in methods if name not in beside and f"`{name}`" not in page] == []
