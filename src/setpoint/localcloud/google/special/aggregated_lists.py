"""Lists of Compute Engine over all regions and zones: `projects/{project}/aggregated/{collection}`."""

from typing import Final

from setpoint.localcloud import api_errors
from setpoint.localcloud.google.collections import collections_of
from setpoint.localcloud.google.reads import CatalogueServices
from setpoint.localcloud.routing import Route, ServiceCall
from setpoint.localcloud.schema import JsonBody

_MOST: Final = 500


def aggregated_list(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """The objects of a collection by the region or zone that they are in, page by page; global ones, too."""
    project, name = call.part("project"), call.part("collection")
    shown = next((one for one in collections_of("compute") if one.plural == name), None)
    if shown is None:
        raise api_errors.not_found()
    found = sorted(key for key in services.state.objects if _place(key, project, name))
    left = [key for key in found if key > call.query.get("pageToken", "")]
    size = min(int(call.query.get("maxResults", _MOST)), _MOST)
    items: dict[str, dict[str, list[JsonBody]]] = {}
    for key in left[:size]:
        scope = items.setdefault(_place(key, project, name), {name: []})
        scope[name].append(services.state.objects[key].body)
    more = {"nextPageToken": left[size - 1]} if len(left) > size else {}
    return {"kind": f"compute#{shown.singular}AggregatedList", "items": items, **more}


def _place(key: str, project: str, name: str) -> str:
    """The region or zone of an object of the collection, or `global`; empty for any other object."""
    match key.split("/"):
        case ["compute", "projects", its, "global", kind, _] if (its, kind) == (project, name):
            return "global"
        case ["compute", "projects", its, ("regions" | "zones") as sort, at, kind, _] if (its, kind) == (project, name):
            return f"{sort}/{at}"
        case _:
            return ""


AGGREGATED_ROUTES: Final[tuple[Route[CatalogueServices], ...]] = (
    Route(
        "GET",
        "/projects/{project}/aggregated/{collection}",
        aggregated_list,
        frozenset({"maxResults", "pageToken", "filter", "orderBy", "returnPartialSuccess"}),
    ),
)
