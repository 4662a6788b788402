"""The shop, and a folder where its plug-in is installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.installed_plugins import install_shop
from tests.plugins.shop_server import TOKEN, Shop
from tests.plugins.shop_workspace import ShopWorkspace


@pytest.fixture(scope="session")
def opened_shop() -> Iterator[Shop]:
    """A shop in a thread, for all tests of a process."""
    with Shop() as shop:
        yield shop


@pytest.fixture
def shop(opened_shop: Shop) -> Shop:
    """The shop, empty."""
    opened_shop.clear()
    return opened_shop


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the path with the plug-in of the shop."""
    return install_shop(tmp_path_factory.mktemp("site"))


@pytest.fixture
def workspace(shop: Shop, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ShopWorkspace:
    """An empty folder, the shop, and commands that find its plug-in."""
    monkeypatch.syspath_prepend(installed)
    return ShopWorkspace(shop, tmp_path, {"SHOP_ENDPOINT": shop.address, "SHOP_TOKEN": TOKEN})
