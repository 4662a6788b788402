"""Builds the site: strict about links and anchors, and without anything from another host."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.site.pages import write_pages

_FOLDER: Final = Path(__file__).parent
_CONFIGURATION: Final = "mkdocs.yml"
_STYLES: Final = "assets/extra.css"
# From a folder, browsers start no worker: the search needs a stand-in, which the theme loads from another host.
_REMOTE_WORKER: Final = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"[^>]*></script>')
_WORKER: Final = "assets/javascripts/frame-worker.js"


class SiteInvalid(Exception):
    """The pages cannot be built; the message has what is wrong with which page."""


def build_site(repository: Path, output: Path) -> int:
    """Replaces the folder `output` by the site; the number of its pages. SiteInvalid leaves the folder as it is."""
    with tempfile.TemporaryDirectory(prefix="setpoint-site-") as name:
        workspace = Path(name)
        write_pages(repository, workspace / "docs")
        (workspace / "docs" / _STYLES).parent.mkdir(exist_ok=True)
        shutil.copyfile(_FOLDER / Path(_STYLES).name, workspace / "docs" / _STYLES)
        shutil.copyfile(_FOLDER / _CONFIGURATION, workspace / _CONFIGURATION)
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SiteInvalid(done.stdout + done.stderr)
        built = workspace / "site"
        pages = _without_other_hosts(built)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(built, output)
        return pages


def _without_other_hosts(site: Path) -> int:
    shutil.copyfile(_FOLDER / "frame_worker.js", site / _WORKER)
    pages = sorted(site.rglob("*.html"))
    for page in pages:
        up = "../" * (len(page.relative_to(site).parts) - 1)
        script = f'<script src="{up}{_WORKER}"></script>'
        html, count = _REMOTE_WORKER.subn(script, page.read_text(encoding="utf-8"))
        if not count and page.name != "404.html":
            raise SiteInvalid(f"{page.relative_to(site)}: the script that replaces workers is not where it was")
        page.write_text(html, encoding="utf-8")
    return len(pages)
