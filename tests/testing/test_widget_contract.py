"""The contract on the widgets of the shop: a kind by HTTP, on a real server, whose calls fail with statuses."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest

from setpoint.kind import MISSING
from setpoint.testing import ImmutableChange, KindContract, KindFixture, Part, Spec, SpecifiedField, UnspecifiedField
from tests.plugins.shop.shop_setpoint.widget import WidgetKind
from tests.plugins.shop_server import TOKEN, Shop

pytestmark = pytest.mark.slow

NAME = "w"


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """The shop of all claims."""
    with Shop() as shop:
        yield shop


class WidgetFixture(KindFixture):
    """A widget in the shop."""

    kind_type = WidgetKind
    name = NAME
    field = SpecifiedField("spec.size", 1, 2, drifted=9)
    bare: ClassVar[Spec] = {"size": 1}
    without: ClassVar[Mapping[Part, str]] = {
        Part.LABELS: "a widget has no labels",
        Part.MOVE: "a widget is where its name says, which never changes",
        Part.OPERATIONS: "the shop answers when it is done",
        Part.OUTPUTS: "the shop numbers its widgets as they come",
        Part.OWN_ABANDON: "the spec of a widget does not speak of deletion",
        Part.PROTECTION: "nothing about a widget keeps data from being lost",
        Part.PRUNING: "it has one field with a default",
        Part.REFERENCES: "a widget refers to nothing",
    }
    unspecified = UnspecifiedField("spec.colour", "red", pruned="grey")
    immutable = ImmutableChange(
        {"size": 1, "shelf": "a"}, {"size": 1, "shelf": "b"}, 'spec.shelf cannot change from "a" to "b"'
    )
    with_secret: ClassVar[Spec] = {
        "size": 1,
        "password": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
    }

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def set_up(self) -> None:
        self.shop.clear()

    def environment(self) -> dict[str, str]:
        return {"SHOP_ENDPOINT": self.shop.address, "SHOP_TOKEN": TOKEN}

    def objects(self) -> list[str]:
        return list(self.shop.widgets)

    def read(self, member: str) -> Any:
        return self.shop.widgets.get(NAME, {}).get(member, MISSING)

    def drift(self, member: str, value: Any) -> None:
        self.shop.widgets[NAME][member] = value

    def create_outside(self, value: Any) -> None:
        self.shop.widgets[NAME] = {"name": NAME, "serial": "S-0", "size": value, "colour": "grey"}

    def delete_outside(self) -> None:
        del self.shop.widgets[NAME]

    def holds_secret(self, text: str) -> bool:
        return self.shop.passwords == {NAME: text}

    def move_output(self) -> dict[str, str]:
        self.drift("serial", "S-99")
        return {"serial": "S-99"}

    def add_field(self) -> None:
        self.drift("addedTomorrow", {"x": 1})


class TestWidget(KindContract):
    fixture = WidgetFixture

    @pytest.fixture
    def new_fixture(self, shop: Shop) -> Callable[[], KindFixture]:
        return lambda: WidgetFixture(shop)
