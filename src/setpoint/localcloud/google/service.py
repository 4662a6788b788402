"""The generic server: a request for any service of the catalogue in, a response out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias

from setpoint.core.values.canonical import same
from setpoint.localcloud import api_errors
from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.google import api_words, operations, policies
from setpoint.localcloud.google.collections import (
    ApiPath,
    MethodRoute,
    api_of_host,
    best_routes,
    collection_of,
    parse_path,
)
from setpoint.localcloud.google.custom_methods import custom_method
from setpoint.localcloud.google.objects import create_object, delete_object, update_object
from setpoint.localcloud.google.operations import CatalogueOperation
from setpoint.localcloud.google.outputs import ObjectAddress, touched
from setpoint.localcloud.google.reads import CatalogueServices, CollectionCall, get_object, list_objects
from setpoint.localcloud.google.special.services import answer_special
from setpoint.localcloud.google.validation import FRONT_END_PARAMETERS, camel
from setpoint.localcloud.routing import ServiceCall, ServiceResponse, project_number
from setpoint.localcloud.schema import JsonBody, merge_patch

CollectionMethod: TypeAlias = Callable[[CatalogueServices, CollectionCall], JsonBody]

_METHODS: Final[Mapping[str, CollectionMethod]] = {
    "create": create_object,
    "get": get_object,
    "list": list_objects,
    "patch": update_object,
    "update": update_object,
    "delete": delete_object,
}
# Those that these methods have in every service, and which rows leave out.
_USUAL: Final[Mapping[str, frozenset[str]]] = {
    "create": frozenset({"requestId", "validateOnly"}),
    "list": frozenset({"pageSize", "pageToken", "maxResults", "filter", "orderBy", "returnPartialSuccess"}),
    "patch": frozenset({"requestId", "validateOnly", "allowMissing"}),
    "update": frozenset({"requestId", "validateOnly", "allowMissing"}),
    "delete": frozenset({"requestId", "validateOnly", "allowMissing", "etag"}),
}
# Their deletions return nothing at all, not an empty object.
_NO_CONTENT: Final = frozenset({"bigquery", "dns", "storage"})
_GOOGLE: Final = ".googleapis.com"


def answer_google(services: CatalogueServices, call: ServiceCall) -> ServiceResponse | None:
    """The response of a service of the catalogue; None when the path is none of theirs. Due operations finish first."""
    api, path = addressed(call.path)
    if path is None:
        return None
    operations.finish_due(services.state, call.now)
    try:
        body = _answer(services, call, api, path)
    except CloudApiError as error:
        raise api_words.in_form_of(api or "", error) from error
    if body == {} and call.method == "DELETE" and (api or path.prefix) in _NO_CONTENT:
        return ServiceResponse(204, None, {})
    return None if body is None else ServiceResponse(200, body, {})


def addressed(path: str) -> tuple[str | None, ApiPath | None]:
    """The API and the path in it; no API when the first segment is not a host of Google's."""
    host, _, rest = path.removeprefix("/").partition("/")
    if not host.endswith(_GOOGLE):
        return None, parse_path(path)
    parsed = parse_path(rest)
    if host == f"www{_GOOGLE}" and parsed is not None:
        return parsed.prefix or None, parsed
    return api_of_host(host), parsed


def waiting_seconds(services: CatalogueServices, call: ServiceCall) -> float:
    """How long the response to a `wait` for an operation is held back."""
    if call.method != "POST" or not call.path.endswith("/wait"):
        return 0.0
    api, path = addressed(call.path)
    operation = None if path is None else _operation(services, api, ApiPath("", "", path.segments[:-1]))
    return 0.0 if operation is None else operations.seconds_left(operation, call.now)


def _answer(services: CatalogueServices, call: ServiceCall, api: str | None, path: ApiPath) -> JsonBody | None:
    if not {".", ".."}.isdisjoint(path.segments):
        raise api_errors.dot_segment(call.path)
    path = _by_project_id(services, path)
    operation = _asked_operation(services, call, api, path)
    if operation is not None:
        return operations.operation_view(operation)
    special = answer_special(services, call, api, path)
    if special is not None:
        return special
    policy = policies.answer_policy(services, call, api, path)
    if policy is not None:
        return policy
    routes = best_routes(api, call.method, path)
    if not routes:
        return None
    if len({one.collection.api for one in routes}) > 1:
        hosts = ", ".join(sorted({one.collection.host for one in routes}))
        raise api_errors.no_such_method(call.method, f"{call.path}: several services have it; name one of {hosts}")
    try:
        return _routed(services, call, routes[0], path)
    except CloudApiError as error:
        raise api_words.in_form_of(routes[0].collection.api, error) from error


def _by_project_id(services: CatalogueServices, path: ApiPath) -> ApiPath:
    """A path with the id of its project, where it has the number of one that is known."""
    segments = path.segments
    if len(segments) < 2 or segments[0] != "projects" or not segments[1].isdecimal():
        return path
    known = {parts[2] for key in services.state.objects if (parts := key.split("/"))[1] == "projects"}
    for one in known:
        if project_number(one) == segments[1]:
            raw = path.raw.replace(f"projects/{segments[1]}", f"projects/{one}", 1)
            return replace(path, segments=("projects", one, *segments[2:]), raw=raw)
    return path


def _asked_operation(
    services: CatalogueServices, call: ServiceCall, api: str | None, path: ApiPath
) -> CatalogueOperation | None:
    if call.method == "GET":
        return _operation(services, api, path)
    last = path.segments[-1]
    if call.method == "POST" and last == "wait":
        return _operation(services, api, ApiPath("", "", path.segments[:-1]))
    if call.method == "POST" and last.endswith(":wait"):
        return _operation(services, api, ApiPath("", "", (*path.segments[:-1], last.removesuffix(":wait"))))
    return None


def _operation(services: CatalogueServices, api: str | None, path: ApiPath) -> CatalogueOperation | None:
    if "operations" not in path.segments:
        return None
    if api is not None:
        return services.state.operations.get(f"{api}/{path.name}")
    return next((one for one in services.state.operations.values() if one.name == path.name), None)


def _routed(services: CatalogueServices, call: ServiceCall, route: MethodRoute, path: ApiPath) -> JsonBody:
    facts = route.collection.methods[route.method]
    query = {name if name in facts.query else camel(name): value for name, value in call.query.items()}
    for name in query:
        if name not in facts.query and name not in FRONT_END_PARAMETERS | _USUAL.get(route.method, frozenset()):
            raise api_errors.unknown_parameter(name)
    if route.custom:
        last = path.segments[-1].removesuffix(f":{route.custom}")
        path = replace(path, segments=(*path.segments[:-1], last))
    asked = CollectionCall(
        collection=route.collection,
        method=route.method,
        facts=facts,
        path=path,
        query=query,
        body=call.body,
        now=call.now,
        if_match=call.if_match,
    )
    creates = route.method in route.collection.row.create_methods.values()
    return (create_object if creates else _METHODS.get(route.method, custom_method))(services, asked)


def edit_catalogue_object(services: CatalogueServices, path: str, patch: JsonBody, now: datetime) -> bool:
    """Merges `patch` into the object at a path, with or without a host; False when there is no such collection."""
    api, parsed = addressed(path)
    if parsed is None:
        return False
    keys = [f"{api}/{parsed.name}"] if api else [key for key in services.state.objects if _named(key, parsed.name)]
    found = services.state.objects.get(keys[0]) if len(keys) == 1 else None
    collection = collection_of(keys[0].partition("/")[0], parsed) if found is not None else None
    if found is None or collection is None:
        return False
    edited = merge_patch(found.body, patch)
    if not same(edited, found.body):
        services.state.count += 1
        found.serial = services.state.count
        found.body = {**touched(ObjectAddress(collection, parsed.name), edited, now, found.serial), **_set_in(patch)}
    return True


def _named(key: str, name: str) -> bool:
    return key.partition("/")[2] == name


def _set_in(patch: JsonBody) -> JsonBody:
    """What an edit sets itself stays, even where the service would set it."""
    return {name: value for name, value in patch.items() if value is not None and not isinstance(value, dict)}
