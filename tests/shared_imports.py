"""Each worker imports a share of the test modules before it collects them all: a plugin of pytest, for pytest-xdist.

In a new checkout the assertions of a module are rewritten when it is first imported, which takes three times as long as
the rest of the collection. Without this, all workers import in the same order, and each rewrites every module. With it,
each finds what the others have written.
"""

import importlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Imports the share of this worker."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    root = session.config.rootpath
    number = int(worker["workerid"].removeprefix("gw"))
    modules = modules_below(root / argument for argument in session.config.args)
    for file in share(modules, number, worker["workercount"]):
        # The collection reports what cannot be imported, and skips what says so.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


def modules_below(arguments: Iterable[Path]) -> list[Path]:
    """The test modules in folders that are to be collected, but for packages: those are imported by another name."""
    found = {file for folder in arguments if folder.is_dir() for file in folder.rglob("test_*.py")}
    return sorted(file for file in found if not (file.parent / "__init__.py").exists())


def share(files: Sequence[Path], worker: int, workers: int) -> Sequence[Path]:
    """Every worker has its own files, and all workers have all of them."""
    return files[worker::workers]
