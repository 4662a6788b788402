"""The test modules are shared out among the workers: each has its own, and none is left out."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.shared_imports import modules_below, share


@given(st.integers(0, 40), st.integers(1, 9))
def test_each_module_is_in_one_share(modules: int, workers: int) -> None:
    files = [Path(f"test_{number}.py") for number in range(modules)]
    shares = [share(files, worker, workers) for worker in range(workers)]

    assert sorted(file for part in shares for file in part) == sorted(files)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_modules_are_those_of_folders_that_are_no_packages(tmp_path: Path) -> None:
    for name in ("a/test_a.py", "a/b/test_b.py", "a/b/other.py", "c/__init__.py", "c/test_c.py", "d/test_d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    arguments = [tmp_path / "a", tmp_path / "a/b", tmp_path / "c", tmp_path / "d/test_d.py", tmp_path / "e"]

    assert modules_below(arguments) == [tmp_path / "a/b/test_b.py", tmp_path / "a/test_a.py"]
