"""Another version of `setpoint`: a copy of this one with something changed, in an environment or as a wheel."""

import shutil
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZipFile

import setpoint

SOURCE = Path(setpoint.__file__).parent
PROGRAM = "[console_scripts]\nsetpoint = setpoint.cli.entry:main\n"


def other_version(folder: Path, version: str, edits: Mapping[str, tuple[str, str]]) -> Path:
    """The environment of a version that differs by these edits, by file; it has the packages of this one."""
    environment = folder / version
    venv.create(environment, with_pip=False)
    copy = environment / "src" / "setpoint"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in _edited(version, edits):
        (copy / name).write_text(text, encoding="utf-8")
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "paths.pth").write_text(f"{copy.parent}\n{_packages()}", encoding="utf-8")
    return environment


def wheel_of(folder: Path, version: str, edits: Mapping[str, tuple[str, str]]) -> None:
    """That version as a wheel. Once it is installed, it has the packages of this one."""
    files = {file.relative_to(SOURCE).as_posix(): file for file in SOURCE.rglob("*") if "__pycache__" not in file.parts}
    texts = {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.is_file()}
    texts |= dict(_edited(version, edits))
    package = {f"setpoint/{name}": text for name, text in texts.items()}
    wheel(folder, version, {**package, "paths.pth": _packages()}, PROGRAM)


def wheel(folder: Path, version: str, files: Mapping[str, str], programs: str) -> None:
    """A wheel named `setpoint` with these files."""
    about = f"setpoint-{version}.dist-info"
    whole = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: setpoint\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": programs,
    }
    record = "".join(f"{name},,\n" for name in (*whole, f"{about}/RECORD"))
    folder.mkdir(exist_ok=True)
    with ZipFile(folder / f"setpoint-{version}-py3-none-any.whl", "w") as archive:
        for name, text in {**whole, f"{about}/RECORD": record}.items():
            archive.writestr(name, text)


def _edited(version: str, edits: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The files that differ, by name."""
    for name, (before, after) in {"__init__.py": (setpoint.__version__, version), **edits}.items():
        text = (SOURCE / name).read_text(encoding="utf-8")
        assert before in text, f"{name} does not say {before}"
        yield name, text.replace(before, after)


def _packages() -> str:
    paths = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return "".join(f"{path}\n" for path in dict.fromkeys(paths))
