"""The owner Display: a widget in the window of the shop, with its page, its prices and a key."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from setpoint import kind

CONFIG_MAP = kind.ObjectKind("", "v1", "ConfigMap", "configmaps")
SECRET = kind.ObjectKind("", "v1", "Secret", "secrets")
WIDGET = kind.ObjectKind("shop.example.com", "v1", "Widget", "widgets")


class DisplaySpec(kind.SpecStruct, frozen=True):
    title: str
    """The title of the page."""
    size: int = 1
    """How large the widget is."""
    colour: str = "grey"
    """The colour of the widget."""
    prices: str = ""
    """The ConfigMap that the prices are copied from."""


class DisplayOwner(kind.BaseOwner[DisplaySpec]):
    """A widget in the window of the shop."""

    group = "shop.example.com"
    makes = (CONFIG_MAP, SECRET, WIDGET)
    reads = (CONFIG_MAP,)

    def sources(self, resource: kind.Resource) -> Sequence[kind.ResourceRef]:
        prices = self.spec_of(resource).prices
        return (self.ref_of(CONFIG_MAP, prices, resource),) if prices else ()

    def children(
        self, resource: kind.Resource, spec: DisplaySpec, found: Mapping[kind.ResourceRef, kind.Resource]
    ) -> Iterator[kind.Child]:
        name, labels = resource.ref.name, {"labels": {"display": resource.ref.name}}
        page = {"metadata": labels, "data": {"title": spec.title, "text": "Come in"}}
        yield self.child(resource, CONFIG_MAP, page, name=f"{name}-page", editable={"data.text": kind.WholeValue()})
        key = self.child(
            resource,
            SECRET,
            {"metadata": labels, "data": {}},
            name=f"{name}-key",
            policy=kind.ChildUpdatePolicy.CREATE_ONLY,
        )
        yield replace(key, filled_on_create="a key")
        colour = {"spec.colour": kind.WholeValue()}
        widget = {"metadata": labels, "spec": {"size": spec.size, "colour": spec.colour}}
        yield self.child(resource, WIDGET, widget, editable=colour)
        for ref in self.sources(resource):
            if ref not in found:
                raise kind.DependencyNotFound(f"{ref} is not there: create it")
            prices = {"metadata": labels, "data": found[ref].document.get("data", {})}
            overwrite = kind.ChildUpdatePolicy.OVERWRITE
            yield self.child(resource, CONFIG_MAP, prices, name=f"{name}-prices", policy=overwrite)

    def completed(self, child: kind.Child) -> kind.JsonObject:
        return {**child.object, "data": {"key": secrets.token_hex(8)}} if child.filled_on_create else child.object

    def status_of(self, resource: kind.Resource, children: Mapping[str, kind.Resource]) -> kind.OwnerStatus:
        return kind.OwnerStatus(self.readiness(children, f"Widget/{resource.ref.name}"), {"children": len(children)})
