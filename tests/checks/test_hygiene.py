import subprocess
from pathlib import Path

import pytest

from checks.hygiene import main


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "cd " + "/ro" + "ot",
        'STATE = "' + "/wo" + 'rk/state.db"',
        "see " + "/ho" + "me/ada/notes",
        "--ind" + "ex-url somewhere",
        "PIP_IND" + "EX_URL=somewhere",
        '"resol' + 'ved": "https://somewhere/a.tgz"',
    ],
)
def test_text_that_belongs_to_one_machine_is_found_with_its_line(
    line: str, work_tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work_tree / "notes.txt").write_text(f"fine\n{line}\n", encoding="utf-8")

    assert main(work_tree) == 1
    assert capsys.readouterr().out.startswith("notes.txt:2: a ")


@pytest.mark.parametrize("line", ["$HOME/work", "docs/home/x", "https://example.com/root/x", "{base}/work"])
def test_paths_below_other_folders_are_accepted(line: str, work_tree: Path) -> None:
    (work_tree / "notes.txt").write_text(line, encoding="utf-8")

    assert main(work_tree) == 0


def test_a_lock_file_is_refused_by_its_name(work_tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work_tree / "uv.lock").touch()

    assert main(work_tree) == 1
    assert capsys.readouterr().out.startswith("uv.lock:1: a lock file")


def test_ignored_files_and_binary_files_are_skipped(work_tree: Path) -> None:
    (work_tree / ".gitignore").write_text("private\n", encoding="utf-8")
    (work_tree / "private").write_text("/ro" + "ot/x", encoding="utf-8")
    (work_tree / "binary").write_bytes(bytes(range(256)))

    assert main(work_tree) == 0


def test_outside_of_a_work_tree_nothing_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tmp_path) == 0
    assert capsys.readouterr().out == "hygiene: not a git work tree, nothing to look at\n"
