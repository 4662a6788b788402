"""Another version of `setpoint`, in an environment of its own: a copy of this one in which something was changed."""

import shutil
import sysconfig
import venv
from collections.abc import Mapping
from pathlib import Path

import setpoint

SOURCE = Path(setpoint.__file__).parent


def other_version(folder: Path, version: str, edits: Mapping[str, tuple[str, str]]) -> Path:
    """The environment of a version that differs by these edits, by file; it has the packages of this one."""
    environment = folder / version
    venv.create(environment, with_pip=False)
    copy = environment / "src" / "setpoint"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, after) in {"__init__.py": (setpoint.__version__, version), **edits}.items():
        text = (copy / name).read_text(encoding="utf-8")
        assert before in text, f"{name} does not say {before}"
        (copy / name).write_text(text.replace(before, after), encoding="utf-8")
    (site,) = environment.glob("lib/python*/site-packages")
    paths = (str(copy.parent), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    (site / "paths.pth").write_text("".join(f"{path}\n" for path in dict.fromkeys(paths)), encoding="utf-8")
    return environment
