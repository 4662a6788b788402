"""The tutorial for new users, in a real shell: what it installs, declares, changes and deletes."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.polling import until
from tests.docs.reader_shell import ReaderShell, install_setpoint
from tests.docs.sessions import TYPED
from tests.terraform.test_tutorial import is_shown

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are ended by their session, as on Linux")
_PAGE: Final = Path("docs/tutorials/first-steps.md")
# A fence, and the file that the text before it names.
_FENCE: Final = re.compile(r"(?:`([\w.]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PORT: Final = "8123"
_CLOUD: Final = "setpoint local-cloud"
_INSTALL: Final = "pip install ./setpoint google-cloud-storage"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[ReaderShell]:
    """A new shell in an empty home directory."""
    opened = ReaderShell(tmp_path, [], _PORT, {})
    yield opened
    opened.close()


@pytest.mark.slow
def test_a_reader_gets_from_nothing_to_deleted(shell: ReaderShell) -> None:
    for file, language, body in _FENCE.findall(_PAGE.read_text(encoding="utf-8")):
        if file:
            (shell.home / file).write_text(body, encoding="utf-8")
        for line, shown in TYPED.findall(body) if language == "console" else ():
            printed = _run(shell, line)
            assert is_shown(printed, shown), f"$ {line}\n{printed}"


@pytest.mark.parametrize("page", sorted(_PAGE.parent.glob("*.md")), ids=lambda page: page.name)
def test_no_command_of_a_tutorial_asks_its_reader(page: Path) -> None:
    """Tests have no terminal, and a reader has: there a deletion asks, and prints what the page does not show."""
    lines = [line for line, _ in TYPED.findall(page.read_text(encoding="utf-8"))]

    assert [line for line in lines if line.startswith("setpoint delete") and "--yes" not in line] == []


def _run(shell: ReaderShell, line: str) -> str:
    if line == _INSTALL:
        return install_setpoint(shell.home / "venv")
    if line.startswith(_CLOUD):
        log = shell.home / "cloud.log"
        shell.run(f"{line} > {log.name} &")
        # It prints all of it at once.
        until(lambda: log.exists() and log.read_text(encoding="utf-8") != "")
        return shell.run("cat cloud.log")
    return shell.run(line)
