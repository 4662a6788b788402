"""The kind Sticker: a text on a widget of the shop."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Struct

from setpoint import kind


class StickerSpec(kind.SpecStruct, frozen=True):
    widgetRef: Annotated[kind.ResourceReference, kind.RefersTo("shop.example.com", "Widget"), kind.Mark.IMMUTABLE]
    """The widget that it is on."""
    text: str
    """What it says."""


class Sticker(Struct, frozen=True):
    text: str


class StickerKind(kind.BaseKind[StickerSpec, Sticker]):
    """A sticker on a widget."""

    group = "shop.example.com"
    writes_through_clients = True

    def __init__(self, context: kind.KindContext) -> None:
        super().__init__(context)
        env = kind.FromEnvironment
        self.shop = kind.JsonService(context, "shop", env("SHOP_ENDPOINT"), token=env("SHOP_TOKEN"))

    def locate(self, resource: kind.Resource, resolved: kind.ResolvedReferences) -> kind.Location:
        return kind.Location(kind.referenced_name("spec.widgetRef", self.spec_of(resource).widgetRef, resolved))

    async def observe(self, location: kind.Location, known: str | None = None) -> kind.Observation[Sticker]:
        return await self.shop.observe(Sticker, "stickers", location, known=known)

    async def observe_many(
        self, locations: Sequence[kind.Location]
    ) -> Mapping[kind.Location, kind.Absent | kind.Present[Sticker]]:
        stickers = msgspec.json.decode(await self.shop.get("stickers") or b"{}", type=dict[str, msgspec.Raw])
        found = {one: self.shop.read(Sticker, bytes(stickers[one])) for one in locations if one in stickers}
        return {one: found.get(one, kind.Absent()) for one in locations}

    async def create(self, intent: kind.Intent, wanted: kind.JsonObject) -> kind.Written[Sticker]:
        return self.shop.written(Sticker, await self.shop.put("stickers", intent.location, body=self.body(wanted)))

    async def update(
        self, intent: kind.Intent, wanted: kind.JsonObject, write: kind.PlannedWrite, before: kind.Present[Sticker]
    ) -> kind.Written[Sticker]:
        return await self.create(intent, wanted)

    async def delete(self, location: kind.Location, before: kind.Present[Sticker], resource: kind.Resource) -> None:
        await self.shop.delete("stickers", location)
