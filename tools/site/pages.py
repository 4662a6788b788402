"""The pages of the site, from the files of the repository.

A page links to files as they lie in the repository, so that a code host shows it as well as the site does. On the site,
a link to a file that has no page, such as a source file, is only its text.
"""

import posixpath
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

DOCS: Final = "docs"
# Pages outside of docs/; they have the same path on the site.
OUTSIDE: Final = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "STYLE.md",
    "examples/README.md",
    "plugins/setpoint-postgresql/README.md",
)
# The front page of the repository is not that of the site.
_INSTEAD: Final = {"README.md": "docs/README.md"}
_FENCE: Final = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2[ \t]*$", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*:|#")


def write_pages(repository: Path, folder: Path) -> None:
    """Writes into the folder all that the site is built from."""
    files = site_files(repository)
    for source, target in files.items():
        written = folder / target
        written.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith(".md"):
            text = (repository / source).read_text(encoding="utf-8")
            written.write_text(with_site_links(text, page=source, files=files), encoding="utf-8")
        else:
            shutil.copyfile(repository / source, written)


def site_files(repository: Path) -> dict[str, str]:
    """The path on the site of each file of the repository that is there."""
    inside = (file.relative_to(repository).as_posix() for file in sorted((repository / DOCS).rglob("*.*")))
    return {path: posixpath.relpath(path, DOCS) for path in inside} | {path: path for path in OUTSIDE}


def with_site_links(text: str, *, page: str, files: Mapping[str, str]) -> str:
    """A page with links as the site has them."""

    def link(found: re.Match[str]) -> str:
        target, hash_sign, fragment = found["target"].partition("#")
        if _ADDRESS.match(found["target"]):
            return found[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        file = _INSTEAD.get(file, file)
        if file not in files:
            return str(found["text"])
        relative = posixpath.relpath(files[file], posixpath.dirname(files[page]) or ".")
        return f"{found['image']}[{found['text']}]({relative}{hash_sign}{fragment})"

    return "".join(part if is_fence else _LINK.sub(link, part) for part, is_fence in _parts(text))


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The text between fences, and the fences, in their order."""
    end = 0
    for fence in _FENCE.finditer(text):
        yield text[end : fence.start()], False
        yield fence[0], True
        end = fence.end()
    yield text[end:], False
