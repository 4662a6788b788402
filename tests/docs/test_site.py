"""The docs site: every link leads somewhere, nothing comes from another host, and a folder of files can be searched."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.dashboard.browser.chromium import BrowserMissing
from tests.dashboard.browser.tabs import SharedBrowser, Tab
from tests.dashboard.page_packages import is_required
from tools.site.build import SiteInvalid, build_site
from tools.site.pages import site_files, with_site_links

ROOT = Path()
# The page for an address that does not exist is shown by servers alone, and has addresses from their root.
NOT_FOUND = "404.html"


class _Parsed(HTMLParser):
    """Where a page leads, what it loads, and which anchors it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a":
            self.links.add(values.get("href", ""))
        elif tag in {"script", "img", "iframe", "source", "link"}:
            self.loaded.add(values.get("src", values.get("href", "")))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    build_site(ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Parsed]:
    """Every page of the site, by its file."""
    found: dict[Path, _Parsed] = {}
    for file in sorted(site.rglob("*.html")):
        if file.name != NOT_FOUND:
            found[file.resolve()] = _Parsed()
            found[file.resolve()].feed(file.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def tab(site: Path) -> Iterator[Tab]:
    """The first page of the site, opened from its folder by a browser without a network."""
    try:
        browser = SharedBrowser()
    except BrowserMissing as missing:
        if is_required(os.environ):
            raise
        pytest.skip(str(missing))
    try:
        with browser.file(site / "index.html") as tab:
            yield tab
    finally:
        browser.close()


def test_every_page_of_the_docs_is_on_the_site(pages: dict[Path, _Parsed]) -> None:
    written = {source for source in site_files(ROOT) if source.endswith(".md")}

    assert len(pages) == len(written) > 170


def test_every_link_leads_to_a_page_and_an_anchor(pages: dict[Path, _Parsed]) -> None:
    broken = [
        f"{file.name}: {link}"
        for file, page in pages.items()
        for link in page.links
        if not urlsplit(link).scheme and not _leads_somewhere(file, link, pages)
    ]

    assert broken == []


def _leads_somewhere(file: Path, link: str, pages: dict[Path, _Parsed]) -> bool:
    parts = urlsplit(link)
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target not in pages:
        return target.is_file() and not parts.fragment
    return unquote(parts.fragment) in pages[target].anchors


def test_nothing_is_loaded_from_another_host(pages: dict[Path, _Parsed]) -> None:
    remote = {one for page in pages.values() for one in page.loaded if urlsplit(one).scheme not in ("", "data")}

    assert remote == set()


def test_every_page_is_found_from_the_first_one(site: Path, pages: dict[Path, _Parsed]) -> None:
    found, new = set[Path](), {(site / "index.html").resolve()}
    while new:
        found |= new
        targets = (
            (file.parent / unquote(urlsplit(link).path)).resolve()
            for file in new
            for link in pages[file].links
            if not urlsplit(link).scheme and urlsplit(link).path
        )
        new = {target for target in targets if target in pages} - found

    assert {page.name for page in pages.keys() - found} == set()


def _search(tab: Tab, words: str) -> None:
    tab.page.reload()
    tab.page.locator("button.md-search__button").wait_for()
    tab.page.keyboard.press("Control+k")
    tab.page.keyboard.type(words)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("unmanaged", ("How-to", "Declare and review", "Release a field")),
        ("false positive", ("Explanation", "Change cookies")),
        ("workqueue", ("Reference", "Operation", "Metrics")),
    ],
)
def test_the_search_finds_a_page_without_a_server_and_a_network(tab: Tab, words: str, place: Sequence[str]) -> None:
    _search(tab, words)
    tab.page.get_by_role("option").filter(has_text="".join(place)).first.wait_for()

    assert tab.troubles == []
    assert {url for url in tab.requested if not url.startswith(("file:", "about:"))} == set()


def test_a_page_that_was_found_is_opened(tab: Tab) -> None:
    _search(tab, "three-way two-way")
    tab.page.get_by_role("option").filter(has_text="ExplanationOwned resources").first.click()
    tab.page.wait_for_url(re.compile("owned-resources"))

    assert tab.text("h1").startswith("Owned resources")


def test_the_copy_button_takes_commands_without_prompts_and_output(site: Path, tab: Tab) -> None:
    tab.page.goto((site / "tutorials/first-steps.html").as_uri())
    tab.page.evaluate("document.addEventListener('copy', () => { window.copied = `${document.getSelection()}` })")
    tab.page.locator("button.md-code__button").first.click()

    lines = tab.page.evaluate("window.copied").split("\n")
    assert [line for line in lines if line] == [
        "python3 -m venv venv",
        ". venv/bin/activate",
        "pip install ./setpoint google-cloud-storage",
        "setpoint version",
    ]


@pytest.mark.parametrize(
    ("page", "text", "on_the_site"),
    [
        ("docs/a.md", "[one](how-to/b.md#part)", "[one](how-to/b.md#part)"),
        (
            "docs/how-to/b.md",
            "[up](../a.md) ![a picture](../images/c.png)",
            "[up](../a.md) ![a picture](../images/c.png)",
        ),
        ("docs/a.md", "[how](../CONTRIBUTING.md#tests)", "[how](CONTRIBUTING.md#tests)"),
        ("CONTRIBUTING.md", "[why](docs/a.md) and [more](docs/how-to/b.md)", "[why](a.md) and [more](how-to/b.md)"),
        ("examples/README.md", "[read](../docs/a.md)", "[read](../a.md)"),
        ("docs/a.md", "[`step`](../src/setpoint/engine/step.py#L3), a verb", "`step`, a verb"),
        ("CONTRIBUTING.md", "[home](README.md)", "[home](README.md)"),
        ("docs/a.md", "[out](https://example.com/a.md) [here](#part)", "[out](https://example.com/a.md) [here](#part)"),
        (
            "docs/a.md",
            "```text\n[as](../src/it.py) is\n```\n[b](../src/c.py)",
            "```text\n[as](../src/it.py) is\n```\nb",
        ),
    ],
)
def test_links_between_files_become_links_between_pages(page: str, text: str, on_the_site: str) -> None:
    files = {
        "docs/README.md": "README.md",
        "docs/a.md": "a.md",
        "docs/how-to/b.md": "how-to/b.md",
        "docs/images/c.png": "images/c.png",
        "CONTRIBUTING.md": "CONTRIBUTING.md",
        "examples/README.md": "examples/README.md",
    }

    assert with_site_links(text, page=page, files=files) == on_the_site


def test_a_broken_link_stops_the_build_and_leaves_the_site_as_it_was(site: Path, tmp_path: Path) -> None:
    for source in site_files(ROOT):
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, tmp_path / source)
    page = tmp_path / "docs/how-to/authenticate.md"
    page.write_text(f"{page.read_text(encoding='utf-8')}\n[Gone](#no-such-part)\n", encoding="utf-8")
    before = (site / "index.html").read_bytes()

    with pytest.raises(SiteInvalid, match="authenticate"):
        build_site(tmp_path, site)

    assert (site / "index.html").read_bytes() == before
