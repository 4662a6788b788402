"""Docs are tested: commands exist, examples run and print what they say, links lead somewhere."""

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from setpoint.cli.main import main
from tests.docs.sessions import TYPED, Shell
from tests.localcloud.process import cloud_process

PAGES = sorted([*Path().glob("*.md"), *Path("docs").rglob("*.md"), *Path("changelog.d").glob("*.md")])
# STYLE.md shows bad code on purpose.
TESTED = [page for page in PAGES if page.name != "STYLE.md"]
# Their examples need a cloud: they are tested in tests/library and test_first_steps.py.
IN_A_CLOUD = (Path("docs/how-to/embed-the-engine.md"), Path("docs/tutorials/first-steps.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:make|setpoint)(?: [^`]+)?)`")
LINK = re.compile(r"\]\(([^)#:]+)\)")


def _fences(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


def _commands() -> list[str]:
    found: set[str] = set()
    for page in TESTED:
        fenced = [line for language, body in _fences(page) if language == "sh" for line in body.splitlines()]
        found.update(line.partition("#")[0].strip() for line in [*fenced, *INLINE.findall(page.read_text("utf-8"))])
    return sorted(found - {"", "setpoint"})


@pytest.mark.parametrize("command", _commands())
def test_every_command_in_the_docs_exists(command: str) -> None:
    program, *arguments = shlex.split(command)
    if program == "make":
        # The target only has to exist: `make test` would run this very test again.
        subprocess.run(["make", "--dry-run", "--silent", *arguments], check=True, capture_output=True)
    else:
        # Sessions show what it does; here it only has to exist.
        assert program == "setpoint"
        assert arguments[0] in {*main.commands, "--help"}


@pytest.mark.parametrize(
    "page",
    [page for page in TESTED if page not in IN_A_CLOUD and any(fence[0] == "python" for fence in _fences(page))],
    ids=str,
)
def test_a_python_example_prints_the_output_on_the_page(page: Path) -> None:
    printed = io.StringIO()
    engine: dict[str, object] = {"__name__": "example"}
    expected = ""
    for language, body in _fences(page):
        if language == "python":
            with contextlib.redirect_stdout(printed):
                exec(compile(body, str(page), "exec"), engine)
        elif language == "":
            expected += body

    assert printed.getvalue() == expected


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_has_an_existing_target(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_command_is_in_the_docs() -> None:
    page = Path("docs/commands.md").read_text(encoding="utf-8")

    assert [name for name in main.commands if f"$ setpoint {name} --help" not in page] == []


# Pages that need a cluster or a real shell are tested in tests/cluster, tests/terraform and test_first_steps.py.
TESTED_ELSEWHERE = (
    Path("docs/how-to/leave-config-connector.md"),
    Path("docs/how-to/patch-an-object.md"),
    Path("docs/how-to/publish-a-plug-in.md"),
    Path("docs/how-to/wait-for-an-object.md"),
    Path("docs/tutorials/first-steps.md"),
    Path("docs/tutorials/terraform.md"),
    Path("docs/tutorials/write-a-kind.md"),
)
CONSOLE = [
    page for page in TESTED if page not in TESTED_ELSEWHERE and any(fence[0] == "console" for fence in _fences(page))
]


@pytest.fixture(scope="module")
def running_cloud() -> Iterator[str]:
    """The address of a local cloud in a process of its own."""
    with cloud_process() as address:
        yield address


@pytest.fixture
def cloud(running_cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty local cloud, and an environment that leads to it."""
    Shell().run(f"curl -s -X DELETE {running_cloud}/_local/state")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", running_cloud)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL", f"{running_cloud}/")
    monkeypatch.setenv("SETPOINT_GCP_AUTH", "anonymous")


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize("page", CONSOLE, ids=str)
def test_a_console_session_prints_the_output_on_the_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fences = _fences(page)
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(Shell()) as shell:
        for language, body in fences:
            if language == "yaml":
                (tmp_path / "manifest.yaml").write_text(body, encoding="utf-8")
            elif language == "console":
                for line, shown in TYPED.findall(body):
                    assert (line, shell.run_until(line, shown)) == (line, shown)
