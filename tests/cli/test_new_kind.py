"""`setpoint new kind`: a package with a kind of one's own, from nothing to an object that is kept as declared."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from setpoint.cli.commands.authoring.new import package_files, template_names
from setpoint.cli.main import main

_ROOT = Path(__file__).parents[2]
_FILES = [
    ".gitignore",
    "Makefile",
    "README.md",
    "example.yaml",
    "pyproject.toml",
    "src/setpoint_widget_order/__init__.py",
    "src/setpoint_widget_order/widget_order.py",
    "tests/service.py",
    "tests/test_widget_order.py",
]


def _new_kind(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["new", "kind", *arguments], catch_exceptions=False)


def _files_below(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_package_is_written_into_a_folder_of_its_name(folder: Path) -> None:
    done = _new_kind("WidgetOrder", "--group", "shop.example.com")

    assert done.exit_code == 0
    assert _files_below(folder) == [f"setpoint-widget-order/{name}" for name in _FILES]
    assert f"make -C {folder}/setpoint-widget-order test\n" in done.output


def test_for_programs_the_files_are_json(folder: Path) -> None:
    shown = json.loads(_new_kind("WidgetOrder", "--to", "here", "-o", "json").output)

    assert shown == {"kind": "WidgetOrder", "group": "example.com", "folder": str(folder / "here"), "files": _FILES}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["widget"], "'widget' is no name of a kind: write one in camel case, such as WidgetOrder"),
        (["Widget-Order"], "'Widget-Order' is no name of a kind"),
        (["Widget", "--group", "Shop"], "--group 'Shop' is no API group: write a domain of your own"),
        (["Widget", "--group", "shop"], "--group 'shop' is no API group"),
        (["Widget", "--to", "full"], "full exists, and is not empty: name another folder by --to"),
        (["Widget", "--to", "full/file"], "full/file exists, and is not empty: name another folder by --to"),
        (["Widget", "--to", "full/file/below"], "Not a directory: name a folder that you can write to by --to"),
    ],
)
def test_what_cannot_be_made_is_refused_and_nothing_is_written(
    arguments: list[str], message: str, folder: Path
) -> None:
    (folder / "full").mkdir()
    (folder / "full" / "file").touch()
    done = _new_kind(*arguments)

    assert done.exit_code == 1
    assert message in done.output
    assert _files_below(folder) == ["full/file"]


@given(st.from_regex(r"[A-Z][A-Za-z0-9]{0,62}", fullmatch=True))
def test_every_name_of_a_kind_makes_modules_that_can_be_imported(kind: str) -> None:
    made = package_files(template_names(kind, "shop.example.com"))

    assert len(made) == len(_FILES)
    for path, text in made.items():
        assert re.fullmatch(r"[A-Za-z0-9_./-]+", path)
        if path.endswith(".py"):
            compile(text, path, "exec")
            assert Path(path).stem.isidentifier()
