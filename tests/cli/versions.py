"""Another version of `setpoint`: this one with some files changed, in an environment or as a wheel."""

import importlib.metadata
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZipFile

import setpoint

SOURCE = Path(setpoint.__file__).parent
PROGRAM = "[console_scripts]\nsetpoint = setpoint.cli.entry:main\n"
_ENTRY = "cli/entry.py"
_SCRIPT = "#!{python}\nfrom setpoint.cli.entry import main\n\nmain()\n"
# To install a pip into a new environment takes longer than all the rest of a test.
_LINKED_PIP = """
import sysconfig
import venv
from pathlib import Path


def link_pip(_builder, context):
    base = {{"base": context.env_dir, "platbase": context.env_dir}}
    for file in map(Path, {files!r}):
        Path(sysconfig.get_path("purelib", "venv", base), file.name).symlink_to(file)


venv.EnvBuilder._setup_pip = link_pip
"""


def other_version(folder: Path, version: str, edits: Mapping[str, tuple[str, str]]) -> Path:
    """The environment of a version that differs by these edits, by file; it has the packages of this one."""
    environment = folder / version
    site = _new_environment(environment)
    for name, text in _changed_files(version, edits).items():
        file = site / "setpoint" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return environment


def command_with_linked_pip(environment: Path) -> Path:
    """The command `setpoint` of this version, in an environment that gives each new one a link to our pip."""
    site = _new_environment(environment)
    (site / "paths.pth").write_text(f"{SOURCE.parent}\n{_packages()}", encoding="utf-8")
    (site / "linked_pip.py").write_text(_LINKED_PIP.format(files=_pip_files()), encoding="utf-8")
    (site / "linked_pip.pth").write_text("import linked_pip\n", encoding="utf-8")
    command = environment / "bin" / "setpoint"
    command.write_text(_SCRIPT.format(python=environment / "bin" / "python"), encoding="utf-8")
    command.chmod(0o755)
    return command


def wheel_of(folder: Path, version: str, edits: Mapping[str, tuple[str, str]]) -> None:
    """That version as a wheel. Once it is installed, it has the packages of this one."""
    files = _changed_files(version, edits, _ENTRY)
    package = {f"setpoint/{name}": text for name, text in files.items()}
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


def _new_environment(environment: Path) -> Path:
    """The folder for packages of a new environment, which has those of this one."""
    venv.create(environment, with_pip=False)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "paths.pth").write_text(_packages(), encoding="utf-8")
    return site


def _changed_files(version: str, edits: Mapping[str, tuple[str, str]], *unchanged: str) -> dict[str, str]:
    """The files that differ, and the packages that they are in: these find all other modules in this version.

    So an interpreter compiles only what differs.
    """
    files = {**dict(_edited(version, edits)), **{name: _text(name) for name in unchanged}}
    packages = {(folder / "__init__.py").as_posix() for name in files for folder in Path(name).parents}
    for name in packages:
        path = SOURCE / Path(name).parent
        files[name] = f"__path__.append({str(path)!r})\n{files.get(name) or _text(name)}"
    return files


def _edited(version: str, edits: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The files that differ, by name."""
    for name, (before, after) in {"__init__.py": (setpoint.__version__, version), **edits}.items():
        text = _text(name)
        assert before in text, f"{name} does not say {before}"
        yield name, text.replace(before, after)


def _text(name: str) -> str:
    return (SOURCE / name).read_text(encoding="utf-8")


def _packages() -> str:
    paths = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return "".join(f"{path}\n" for path in dict.fromkeys(paths))


def _pip_files() -> list[str]:
    """The package of our pip, and its metadata."""
    pip = importlib.metadata.distribution("pip")
    return [str(pip.locate_file("pip")), str(pip.locate_file(f"pip-{pip.version}.dist-info"))]
