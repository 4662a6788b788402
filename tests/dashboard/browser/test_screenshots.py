"""The picture of each view is taken in both themes, and the docs have all of them: `make dashboard-images`."""

import base64
import os
import re
import struct
from pathlib import Path
from typing import Any, Final

import pytest

from tests.dashboard.browser.screenshots import IMAGES, SIZES, THEMES, Shop, file_name, take_pictures
from tests.dashboard.browser.tabs import SharedBrowser

# Names the folder that the pictures are taken into, in the place of one that is thrown away.
_INTO: Final = "SETPOINT_DASHBOARD_IMAGES"
_PAGE: Final = IMAGES.parent / "dashboard.md"
# How many colours a picture has, how much of it the most frequent one fills, and how bright it is in the mean.
_LOOK: Final = """async data => {
  const blob = await (await fetch(`data:image/png;base64,${data}`)).blob()
  const image = await createImageBitmap(blob)
  const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d')
  canvas.drawImage(image, 0, 0)
  const pixels = new Uint32Array(canvas.getImageData(0, 0, image.width, image.height).data.buffer)
  const counts = new Map()
  let light = 0
  for (const one of pixels) {
    counts.set(one, (counts.get(one) ?? 0) + 1)
    light += ((one & 255) + (one >> 8 & 255) + (one >> 16 & 255)) / 765
  }
  return {
    colours: counts.size, most: Math.max(...counts.values()) / pixels.length, light: light / pixels.length,
    size: [image.width, image.height],
  }
}"""


def look_of(browser: SharedBrowser, picture: Path) -> dict[str, Any]:
    """What a picture looks like, by the browser itself."""
    with browser.file(picture) as file:
        found: dict[str, Any] = file.value(_LOOK, base64.b64encode(picture.read_bytes()).decode())
        return found


def size_of(picture: Path) -> tuple[int, int]:
    """The width and height that a PNG says."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height


@pytest.mark.parametrize("theme", THEMES)
def test_each_view_is_taken_in_a_picture(browser: SharedBrowser, shop: Shop, theme: str, tmp_path: Path) -> None:
    folder = Path(os.environ.get(_INTO) or tmp_path).resolve()
    take_pictures(browser, shop, theme, folder)

    for view, size in SIZES.items():
        look = look_of(browser, folder / file_name(view, theme))
        assert (view, look["size"]) == (view, list(size))
        # Text has many shades; of an empty page one colour fills nearly everything.
        assert (view, look["colours"] > 100, look["most"] < 0.95) == (view, True, True), look
        assert (view, look["light"] > 0.8, look["light"] < 0.3) == (view, theme == "light", theme == "dark"), look


def test_the_docs_have_the_picture_of_each_view_in_both_themes_and_no_other() -> None:
    taken = {file_name(view, theme): size for view, size in SIZES.items() for theme in THEMES}

    assert {one.name: size_of(one) for one in IMAGES.glob("dashboard-*.png")} == taken
    shown = re.findall(r"!\[[^]]+\]\(images/(dashboard-[a-z]+-[a-z]+\.png)\)", _PAGE.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(taken)


def test_the_first_page_of_the_project_shows_one() -> None:
    assert f"docs/images/{file_name('overview', 'light')}" in (IMAGES.parents[1] / "README.md").read_text(
        encoding="utf-8"
    )
