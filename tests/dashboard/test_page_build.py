"""The page that is shipped is the one that its sources build, and it is small."""

import gzip
import os
import subprocess
from pathlib import Path

import pytest

from tests.dashboard.page_packages import FOLDER, NodeMissing, is_required, page_packages

STATIC = FOLDER.parent / "src" / "setpoint" / "dashboard" / "static"
LARGEST = 500 * 1024


@pytest.fixture(scope="module")
def programs() -> Path:
    """The programs of the npm packages."""
    try:
        return page_packages() / ".bin"
    except NodeMissing as missing:
        if is_required(os.environ):
            raise
        pytest.skip(str(missing))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def run(program: Path, *arguments: str) -> tuple[int, str]:
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        [program, *arguments],
        cwd=FOLDER,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_shipped_page_is_what_its_sources_build(programs: Path, tmp_path: Path) -> None:
    code, printed = run(programs / "vite", "build", "--outDir", str(tmp_path / "static"), "--emptyOutDir")

    assert code == 0, printed
    assert contents(tmp_path / "static") == contents(STATIC), "run `make dashboard`, and commit what it changed"


def test_the_types_and_the_unit_tests_of_the_page_hold(programs: Path) -> None:
    checked = run(programs / "tsc", "--noEmit")
    tested = run(programs / "vitest", "run")

    assert checked == (0, "")
    assert tested[0] == 0, tested[1]


def test_the_page_is_small() -> None:
    assert 0 < sum(len(gzip.compress(content)) for content in contents(STATIC).values()) <= LARGEST


def test_the_page_asks_no_other_host() -> None:
    files = contents(STATIC)
    # The namespace of SVG is a name, not an address.
    text = b"\n".join(content for name, content in files.items() if name != "licenses.txt")

    assert text.replace(b"http://www.w3.org/", b"").count(b"//fonts.") == 0
    assert b'src="http' not in text
    assert b"<script>" not in files["index.html"]
    assert b"style=" not in files["index.html"]
