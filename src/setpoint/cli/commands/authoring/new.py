"""`setpoint new kind`: writes a package with a kind of one's own, its tests and its page.

The files are templates in `cli/templates`; a name in them such as `$kind` stands for one of `template_names`.
"""

import re
import secrets
import shutil
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Any, Final

from rich.text import Text

from setpoint import __version__
from setpoint.cli.request import CommandRequest, print_json, run_command
from setpoint.errors import UserError
from setpoint.library.outcome import ExitCode

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_GROUP: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+")
# The parts of a name in camel case: an abbreviation counts as one word.
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z][a-z0-9]*")
_TEMPLATE_SUFFIX: Final = ".txt"
_VOWELS: Final = "AEIOU"
_EXAMPLE_GROUP: Final = "example.com"
# Where each template goes, in the package.
_PLACES: Final = {
    "gitignore": ".gitignore",
    "src/__init__.py": "src/$package/__init__.py",
    "src/kind.py": "src/$package/$module.py",
    "tests/test_kind.py": "tests/test_$module.py",
}


def new_kind(options: dict[str, Any]) -> int:
    """The exit code of `setpoint new kind`."""
    return run_command(lambda request: _new_kind(request, options["name"], options["group"], options["to"]), options)


async def _new_kind(request: CommandRequest, kind: str, group: str, to: str | None) -> ExitCode:
    names = template_names(kind, group)
    folder = Path(to or names["distribution"]).expanduser().absolute()
    texts = package_files(names)
    _write_folder(folder, texts)
    if request.output == "json":
        print_json({"kind": kind, "group": group, "folder": str(folder), "files": sorted(texts)}, request)
        return ExitCode.DONE
    request.console.print(Text("\n".join(_instructions(folder, names, sorted(texts)))), soft_wrap=True)
    return ExitCode.DONE


def _instructions(folder: Path, names: Mapping[str, str], files_written: list[str]) -> list[str]:
    lines = [f"The kind {names['kind']} is in {folder}:", *(f"  {name}" for name in files_written), ""]
    if names["group"] == _EXAMPLE_GROUP:
        lines += [f"Its group is {_EXAMPLE_GROUP}: --group names a domain of your own.", ""]
    return [
        *lines,
        "Next:",
        f"  make -C {folder} test",
        f"  pip install --editable {folder}",
        f"  setpoint kinds {names['kind']}",
    ]


def template_names(kind: str, group: str) -> Mapping[str, str]:
    """What the names in templates stand for."""
    if not _KIND.fullmatch(kind):
        raise UserError(f"{kind!r} is no name of a kind: write one in camel case, such as WidgetOrder")
    if not _GROUP.fullmatch(group):
        raise UserError(f"--group {group!r} is no API group: write a domain of your own, such as shop.example.com")
    words = [one.lower() for one in _WORD.findall(kind)]
    slug, article = "-".join(words), "an" if kind[0] in _VOWELS else "a"
    return {
        "kind": kind,
        "group": group,
        "words": " ".join(words),
        "article": article,
        "Article": article.capitalize(),
        "slug": slug,
        "plural": f"{''.join(words)}s",
        "distribution": f"setpoint-{slug}",
        "package": f"setpoint_{slug.replace('-', '_')}",
        "module": slug.replace("-", "_"),
        "variable": f"{slug.replace('-', '_').upper()}_ENDPOINT",
        "version": __version__,
    }


def package_files(names: Mapping[str, str]) -> Mapping[str, str]:
    """The files of the package, by their paths in it."""
    made = {}
    for place, template in _templates(files("setpoint.cli").joinpath("templates", "kind"), ""):
        path = Template(_PLACES.get(place, place)).substitute(names)
        made[path] = Template(template.read_text(encoding="utf-8")).substitute(names)
    return made


def _templates(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for one in sorted(folder.iterdir(), key=lambda each: each.name):
        if one.is_dir():
            found += _templates(one, f"{prefix}{one.name}/")
        elif one.name.endswith(_TEMPLATE_SUFFIX):
            found.append((f"{prefix}{one.name.removesuffix(_TEMPLATE_SUFFIX)}", one))
    return found


def _write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes the files into a new folder, which appears with all of them; UserError if something is in its place."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists, and is not empty: name another folder by --to")
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        for name, text in texts.items():
            file = fresh / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        fresh.replace(folder)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise UserError(f"{folder}: {error.strerror}: name a folder that you can write to by --to") from error
