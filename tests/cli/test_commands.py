"""The commands that there are."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from setpoint import __version__
from setpoint.cli.demo import story
from setpoint.cli.main import main
from setpoint.errors import ImmutableFieldChanged

PICTURE = Path("docs/demo.svg")


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


def test_the_story_has_a_plan_for_everything_that_happens_and_a_refusal_at_the_end() -> None:
    chapters = list(story())

    plans = [chapter.world.plan() for chapter in chapters[:-1]]

    assert [plan.decision.value for plan in plans] == ["create", "in sync", "drifted", "both", "intent changed"]
    assert [[str(change.path) for change in plan.changes] for plan in plans[2:]] == [
        ["spec.settings.tier", "spec.settings.maintenance"],
        ["spec.settings.tier"],
        ["spec.settings.tier", "spec.settings.maintenance"],
    ]
    assert [str(change.path) for change in plans[4].kept] == ["spec.settings.backup.enabled"]
    with pytest.raises(ImmutableFieldChanged, match=r"spec\.region cannot change"):
        chapters[-1].world.plan()


def test_the_demo_tells_who_changed_what() -> None:
    told = _run("demo")

    assert "drifted: the live object changed" in told
    assert "kept (protected)" in told
    assert "refused: spec.region cannot change" in told


def test_the_picture_in_the_readme_is_what_the_demo_draws(tmp_path: Path) -> None:
    drawn = tmp_path / "demo.svg"
    _run("demo", "--svg", str(drawn))

    assert drawn.read_text(encoding="utf-8") == PICTURE.read_text(encoding="utf-8")
