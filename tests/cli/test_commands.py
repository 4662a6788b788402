"""The help of all commands, the demo, and its SVG."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from setpoint import __version__
from setpoint.cli.entry import COMMAND_HELP, help_text
from setpoint.cli.main import main

DEMO_SVG = Path("docs/demo.svg")


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_version_names_the_version() -> None:
    assert _run("version") == f"setpoint {__version__}\n"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_command(flag: str) -> None:
    shown = _run(flag)

    assert "demo" in shown
    assert "version" in shown


def test_the_demo_runs_every_part_and_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    output = _run("demo")

    for line in (
        "create: not there yet",
        "StorageBucket default/build-logs created",
        "StorageBucket default/build-logs unchanged",
        "drifted: the live object changed",
        "by setpoint reconcile: drifted",
        "kept (ignore-unspecified-fields)",
        "kept (unmanaged)",
        'spec.location cannot change from "EU" to "US"',
        "StorageBucket default/build-logs deleted",
    ):
        assert line in output
    assert list(tmp_path.iterdir()) == []


def test_help_is_the_same_with_and_without_click() -> None:
    assert CliRunner().invoke(main, ["--help"], prog_name="setpoint").output == help_text()


def test_every_command_has_a_help_text() -> None:
    assert sorted(main.commands) == sorted(COMMAND_HELP)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    assert "_SETPOINT_COMPLETE" in _run("completion", shell)


def test_the_svg_in_the_readme_is_the_output_of_the_demo(tmp_path: Path) -> None:
    drawn = tmp_path / "demo.svg"
    _run("demo", "--svg", str(drawn))

    assert drawn.read_text(encoding="utf-8") == DEMO_SVG.read_text(encoding="utf-8")
