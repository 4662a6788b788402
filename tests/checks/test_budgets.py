from pathlib import Path

import pytest

from checks.budgets import breaks_in_source, main


def test_a_function_of_forty_lines_is_within_budget() -> None:
    source = function_of(lines=40)

    assert list(breaks_in_source(source, "a.py")) == []


def test_a_longer_function_is_named_with_its_line_and_length() -> None:
    source = "\n" + function_of(lines=47)

    assert list(breaks_in_source(source, "a.py")) == ["a.py:2: function long has 47 lines (budget 40)"]


def test_decorators_do_not_count_but_docstrings_do() -> None:
    source = "@staticmethod\n" + function_of(lines=40).replace("    x = 1\n", '    """Says."""\n', 1)

    assert list(breaks_in_source(source, "a.py")) == []


def test_methods_nested_functions_and_coroutines_have_the_same_budget() -> None:
    body = "".join(f"    {line}\n" for line in ("async " + function_of(lines=41)).splitlines())

    assert list(breaks_in_source("class A:\n" + body, "a.py")) == ["a.py:2: function long has 41 lines (budget 40)"]
    assert list(breaks_in_source("def outer() -> None:\n" + body, "a.py")) == [
        "a.py:1: function outer has 42 lines (budget 40)",
        "a.py:2: function long has 41 lines (budget 40)",
    ]


@pytest.mark.parametrize(
    "parameters",
    [
        "a, b, c, d, e, f, g",
        "self, a, b, c, *, d, e, f, g",
        "cls, a, /, b, c, *, d, e, f, g",
        "a, b, c, d, e, *args, **kwargs",
    ],
)
def test_seven_parameters_are_within_budget(parameters: str) -> None:
    source = f"def f({parameters}): pass\n"

    assert list(breaks_in_source(source, "a.py")) == []


@pytest.mark.parametrize(
    "parameters",
    [
        "a, b, c, d, e, f, g, h",
        "self, a, b, c, d, e, f, g, h",
        "a, /, b, *, c, d, e, f, g, h",
        "a, b, c, d, e, f, *args, **kwargs",
    ],
)
def test_eight_parameters_are_too_many(parameters: str) -> None:
    source = f"def f({parameters}): pass\n"

    assert list(breaks_in_source(source, "a.py")) == ["a.py:1: function f has 8 parameters (budget 7)"]


def test_a_module_may_have_four_hundred_lines_and_no_more() -> None:
    assert list(breaks_in_source("x = 1\n" * 400, "a.py")) == []
    assert list(breaks_in_source("x = 1\n" * 401, "a.py")) == ["a.py:1: module has 401 lines (budget 400)"]


@pytest.mark.parametrize("name", ["src/utils.py", "tests/helpers/data.json", "checks/_common.py"])
def test_a_vague_name_is_refused_for_files_and_folders(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / name, "")

    assert main(tmp_path) == 1
    assert capsys.readouterr().out.startswith(f"{name}:1: the name ")


def test_every_root_is_checked_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("src/a/b", "tests", "benchmarks", "checks", "docs", "src/__pycache__"):
        write(tmp_path / folder / "long.py", function_of(lines=41))

    assert main(tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [
        "src/a/b/long.py:1: function long has 41 lines (budget 40)",
        "tests/long.py:1: function long has 41 lines (budget 40)",
        "benchmarks/long.py:1: function long has 41 lines (budget 40)",
        "checks/long.py:1: function long has 41 lines (budget 40)",
    ]


def test_a_project_within_budget_passes_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "src" / "cookie.py", function_of(lines=3))

    assert main(tmp_path) == 0
    assert capsys.readouterr().out == "budgets: 1 files, all within budget\n"


def function_of(*, lines: int) -> str:
    return "def long() -> None:\n" + "    x = 1\n" * (lines - 1)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
