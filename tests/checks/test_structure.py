from pathlib import Path

import pytest

from checks.structure import OPENERS, OPENS_ITSELF, Measure, imports_of, main, measures_of, modules_below


def test_a_project_within_the_limits_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "__init__.py", '"""A package."""\n')

    assert main(tmp_path) == 0
    assert "structure: modules in src, one for every 150 lines: 1 (at most 20) ok\n" in capsys.readouterr().out


def test_many_small_modules_are_too_many_and_as_many_larger_ones_are_not(tmp_path: Path) -> None:
    for number in range(21):
        write(tmp_path, f"room{number}/m.py", "x = 1\n" * 149)

    assert measure(tmp_path, "modules in src").is_broken

    for number in range(21):
        write(tmp_path, f"room{number}/m.py", "x = 1\n" * 150)

    assert not measure(tmp_path, "modules in src").is_broken


def test_a_crowded_folder_is_named_with_its_number_of_modules(tmp_path: Path) -> None:
    for number in range(16):
        write(tmp_path, f"room/m{number}.py", "")

    assert measured(tmp_path, "folders with more than") == [f"{tmp_path / 'src/room'}: 16"]


def test_a_package_without_a_docstring_is_named(tmp_path: Path) -> None:
    write(tmp_path, "room/__init__.py", "")

    assert measured(tmp_path, "packages whose __init__") == [str(tmp_path / "src/room/__init__.py")]


def test_a_small_module_with_one_importer_is_named_with_it(tmp_path: Path) -> None:
    write(tmp_path, "room/small.py", "x = 1\n")
    write(tmp_path, "room/shared.py", "y = 1\n")
    write(tmp_path, "room/one.py", "from room.small import x\nfrom room.shared import y\n")
    write(tmp_path, "room/two.py", "def f():\n    from room import shared\n")

    assert measured(tmp_path, "modules under 40 lines") == [
        f"{tmp_path / 'src/room/small.py'}: 1 lines, imported by room.one"
    ]


def test_a_public_type_name_in_two_modules_is_named_with_both(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "class Plan: ...\nclass _Own: ...\n")
    write(tmp_path, "b.py", "Plan: TypeAlias = int\nclass _Own: ...\nPLAN: Final = 1\n")

    assert measured(tmp_path, "public type names") == ["Plan: a, b"]


def test_an_actor_without_a_role_is_named_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "x = 1\n# Whoever reads this.\n")

    assert measured(tmp_path, "nobody, somebody") == [f"{tmp_path / 'src/a.py'}:2: # Whoever reads this."]


def test_a_command_that_opens_the_engine_itself_is_named_with_what_it_imports(tmp_path: Path) -> None:
    write(tmp_path, "setpoint/cli/commands/one.py", "def f():\n    from setpoint.app import AppSettings, open_engine\n")
    write(tmp_path, "setpoint/cli/commands/two.py", "from setpoint.library.session import Session\n")
    write(tmp_path, "setpoint/library/three.py", "from setpoint.app import open_app\n")

    assert measured(tmp_path, "modules of the command line") == [
        f"{tmp_path / 'src/setpoint/cli/commands/one.py'}: setpoint.app.open_engine"
    ]


def test_every_command_that_may_open_the_engine_itself_does_so() -> None:
    modules = [one for one in modules_below(Path("src")) if one.name in OPENS_ITSELF]
    names = {f"{home}.{name}" for home in OPENERS for name in OPENERS[home]}

    assert {one.name for one in modules if imports_of(one.tree) & names} == set(OPENS_ITSELF)


def test_a_figure_over_its_limit_fails_and_lists_its_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "room/__init__.py", "")

    assert main(tmp_path) == 1
    assert f"(at most 0) FAILED\n  {tmp_path / 'src/room/__init__.py'}\n" in capsys.readouterr().out
    assert not Measure("modules", 2, 2).is_broken


def measured(root: Path, what: str) -> list[str]:
    """The places of the measure that begins with `what`."""
    found = measure(root, what)
    assert found.figure == len(found.places)
    return list(found.places)


def measure(root: Path, what: str) -> Measure:
    (found,) = (one for one in measures_of(list(modules_below(root / "src"))) if one.what.startswith(what))
    return found


def write(root: Path, file: str, text: str) -> None:
    path = root / "src" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
