"""The kind Widget: a widget of the shop, a small REST service."""

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from setpoint import kind


class WidgetSpec(kind.SpecStruct, frozen=True):
    size: int
    """How large it is."""
    colour: Annotated[str | UnsetType, kind.Default("grey")] = UNSET
    """Its colour."""
    shelf: Annotated[str | UnsetType, kind.Mark.IMMUTABLE] = UNSET
    """The shelf that it is made for."""
    password: kind.SecretValue | UnsetType = UNSET
    """What opens it."""


class Widget(Struct, frozen=True):
    size: int
    colour: str
    shelf: str | UnsetType = UNSET


class WidgetOutputs(Struct, frozen=True):
    serial: str
    """The number that the shop gave it."""


class WidgetKind(kind.BaseKind[WidgetSpec, Widget]):
    """A widget of the shop."""

    group = "shop.example.com"
    outputs_type = WidgetOutputs
    writes_through_clients = True

    def __init__(self, context: kind.KindContext) -> None:
        super().__init__(context)
        token = kind.FromEnvironment("SHOP_TOKEN")
        self.shop = kind.JsonService(context, "shop", kind.FromEnvironment("SHOP_ENDPOINT"), token=token)

    def locate(self, resource: kind.Resource, resolved: kind.ResolvedReferences) -> kind.Location:
        return kind.Location(resource.ref.name)

    async def observe(self, location: kind.Location, known: str | None = None) -> kind.Observation[Widget]:
        return await self.shop.observe(Widget, "widgets", location, known=known, outputs=WidgetOutputs)

    async def create(self, intent: kind.Intent, wanted: kind.JsonObject) -> None:
        await self.shop.post("widgets", body={"name": intent.location, **self.body(wanted)})

    async def update(
        self, intent: kind.Intent, wanted: kind.JsonObject, write: kind.PlannedWrite, before: object
    ) -> None:
        await self.shop.put("widgets", intent.location, body=self.body(wanted, write))

    async def delete(self, location: kind.Location, before: object, resource: kind.Resource) -> None:
        await self.shop.delete("widgets", location)
