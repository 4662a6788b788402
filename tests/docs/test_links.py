"""Links from the docs to definitions lead to their lines; `python -m tests.docs.links` corrects them."""

from pathlib import Path

import pytest

from tests.docs.links import Link, corrected, definitions, links_in, pages

ARCHITECTURE = Path("docs/architecture.md")


@pytest.mark.parametrize("link", [one for page in pages() for one in links_in(page)], ids=lambda one: one.name)
def test_a_link_leads_to_the_line_of_its_definition(link: Link) -> None:
    found = definitions(link.file)

    assert link.name in found, f"{link.page}: {link.name} is not defined in {link.file}: name what is called now"
    assert link.line == found[link.name], "run .venv/bin/python -m tests.docs.links"


def test_the_four_paths_through_the_code_are_linked() -> None:
    assert len(list(links_in(ARCHITECTURE))) > 50


def test_a_wrong_line_number_is_corrected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "src/setpoint/a.py"
    source.parent.mkdir(parents=True)
    source.write_text("import os\n\n\nclass Here:\n    def method(self) -> None: ...\n", encoding="utf-8")
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text("[`Here.method`](../src/setpoint/a.py#L1) and [`gone`](../src/setpoint/a.py#L2)", encoding="utf-8")

    assert corrected(Path("docs/page.md")) == (
        "[`Here.method`](../src/setpoint/a.py#L5) and [`gone`](../src/setpoint/a.py#L2)"
    )
