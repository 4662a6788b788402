"""Runs the few tests that failed once more, without other tests beside them, and names those that pass as flaky.

Laws are not run again: an input that breaks one breaks it whatever else runs.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

# More failures than these are no accident of timing.
MOST = 5
_FAILED_TESTS = Path(".pytest_cache", "v", "cache", "lastfailed")


class PassedTests:
    """A plugin of pytest that collects the names of the tests that pass, their set-up and teardown included."""

    def __init__(self) -> None:
        self._passed: set[str] = set()
        self._failed: set[str] = set()

    @property
    def names(self) -> set[str]:
        """Those that passed, and failed in no phase."""
        return self._passed - self._failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest after each phase of a test."""
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self._passed.add(report.nodeid)


def main(root: Path) -> int:
    """Prints which tests are flaky; 0 when all that failed pass now, else 1."""
    failed = failed_tests(root)
    if not 0 < len(failed) <= MOST:
        print(f"flaky: {len(failed)} tests failed; none is run again")
        return 1
    passed = passed_again(failed)
    for name in failed:
        print(f"FLAKY: {name}: failed beside other tests, and passed alone" if name in passed else f"FAILED: {name}")
    return 0 if passed >= set(failed) else 1


def failed_tests(root: Path) -> list[str]:
    """The tests that failed in the last run, as pytest remembers them."""
    file = root / _FAILED_TESTS
    return sorted(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []


def passed_again(names: Sequence[str]) -> set[str]:
    """Runs the tests, but no laws; those that pass."""
    passed = PassedTests()
    # As in the run of all: tests of a plug-in alone would be named from, and configured by, the plug-in's own project.
    project = ["--config-file", "pyproject.toml", "--rootdir", "."]
    pytest.main([*names, *project, "-p", "no:cacheprovider", "-m", "not laws and not hypothesis"], plugins=[passed])
    return passed.names


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
