"""Distributions as pip would have installed them: a folder for the path, with modules and metadata."""

import shutil
from pathlib import Path

SHOP = Path(__file__).with_name("shop") / "shop_setpoint"
WIDGET = "Widget.v1.shop.example.com = shop_setpoint.widget:WidgetKind"
STICKER = "Sticker.v1.shop.example.com = shop_setpoint.sticker:StickerKind"


def install(folder: Path, name: str, *entries: str, version: str = "1.2", requires: str = "setpoint>=0.1,<1") -> Path:
    """Puts the metadata of a distribution into the folder, with these entry points."""
    metadata = folder / f"{name}-{version}.dist-info"
    metadata.mkdir(parents=True)
    lines = "\n".join(["[console_scripts]", "other = module:main", "", "[setpoint.kinds]", *entries, ""])
    (metadata / "entry_points.txt").write_text(lines, encoding="utf-8")
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: {requires}\n\nText.\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    return folder


def install_shop(folder: Path) -> Path:
    """Installs the plug-in of the shop."""
    shutil.copytree(SHOP, folder / SHOP.name, ignore=shutil.ignore_patterns("__pycache__"))
    return install(folder, SHOP.name, WIDGET, STICKER)
